package limit

import (
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestBurst(t *testing.T) {
	l := New(1, 3)
	clock := time.Unix(0, 0)
	l.now = func() time.Time { return clock }
	for i := 0; i < 3; i++ {
		if !l.Allow("a") {
			t.Fatalf("request %d refused", i)
		}
	}
	if l.Allow("a") {
		t.Error("a fourth request was allowed")
	}
	clock = clock.Add(time.Second)
	if !l.Allow("a") {
		t.Error("no token after a second")
	}
}

func TestConcurrentAllow(t *testing.T) {
	l := New(1, 10)
	clock := time.Unix(0, 0)
	l.now = func() time.Time { return clock }

	var allowed int64
	var wg sync.WaitGroup
	for i := 0; i < 50; i++ {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for j := 0; j < 100; j++ {
				if l.Allow("shared") {
					atomic.AddInt64(&allowed, 1)
				}
				l.Allow(strconv.Itoa(j))
			}
		}()
	}
	wg.Wait()
	if allowed != 10 {
		t.Errorf("allowed %d requests, want 10", allowed)
	}
}

func TestDropIdle(t *testing.T) {
	l := New(1, 3)
	clock := time.Unix(0, 0)
	l.now = func() time.Time { return clock }
	for i := 0; i < 10; i++ {
		l.Allow(strconv.Itoa(i))
	}
	clock = clock.Add(time.Minute)
	l.Allow("x")
	if len(l.buckets) != 1 {
		t.Errorf("%d buckets left, want 1", len(l.buckets))
	}
}
