package limit

import (
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
