package api

import (
	"fmt"
	"sync"
)

type memory struct {
	sync.RWMutex
	m map[string]any
}

var db = &memory{m: map[string]any{}}

func (s *memory) Get(kind, id string) (any, error) {
	s.RLock()
	defer s.RUnlock()
	v, ok := s.m[kind+"/"+id]
	if !ok {
		return nil, fmt.Errorf("no %s %q", kind, id)
	}
	return v, nil
}

func (s *memory) Delete(kind, id string) error {
	s.Lock()
	defer s.Unlock()
	delete(s.m, kind+"/"+id)
	return nil
}
