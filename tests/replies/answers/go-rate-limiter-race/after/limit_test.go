package limit

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestConcurrent(t *testing.T) {
	const goroutines, requests, burst = 50, 200, 100
	l := New(1, burst)
	clock := time.Unix(0, 0)
	l.now = func() time.Time { return clock }
	var allowed atomic.Int64
	var wg sync.WaitGroup
	for g := 0; g < goroutines; g++ {
		wg.Add(1)
		go func(g int) {
			defer wg.Done()
			for i := 0; i < requests; i++ {
				if l.Allow("shared") {
					allowed.Add(1)
				}
				l.Allow(fmt.Sprintf("own-%d-%d", g, i))
			}
		}(g)
	}
	wg.Wait()
	if n := allowed.Load(); n != burst {
		t.Errorf("%d requests allowed, want %d", n, burst)
	}
}

func TestIdleBucketsAreDropped(t *testing.T) {
	l := New(1, 3)
	clock := time.Unix(0, 0)
	l.now = func() time.Time { return clock }
	for i := 0; i < 100; i++ {
		l.Allow(fmt.Sprint(i))
	}
	clock = clock.Add(2 * time.Second)
	l.Allow("busy")
	if n := len(l.buckets); n != 101 {
		t.Errorf("%d buckets, want 101", n)
	}
	clock = clock.Add(2 * time.Second)
	l.Allow("new")
	if n := len(l.buckets); n != 2 {
		t.Errorf("%d buckets left, want 2", n)
	}
}

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
