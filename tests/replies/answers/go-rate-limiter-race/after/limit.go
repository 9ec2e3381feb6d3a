// Package limit is a token bucket for each key.
package limit

import (
	"fmt"
	"net/http"
	"sync"
	"time"
)

type bucket struct {
	tokens float64
	last   time.Time
}

// Limiter allows Rate requests a second for each key, in bursts of Burst.
// It may be used by several goroutines; Rate and Burst must not be changed then.
type Limiter struct {
	Rate  float64
	Burst int
	now   func() time.Time

	mu      sync.Mutex // guards what follows
	buckets map[string]*bucket
	swept   time.Time
}

func New(rate float64, burst int) *Limiter {
	return &Limiter{Rate: rate, Burst: burst, buckets: map[string]*bucket{}, now: time.Now}
}

// Allow says whether a request for key may go on now.
func (l *Limiter) Allow(key string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	l.sweep(now)
	b, ok := l.buckets[key]
	if !ok {
		b = &bucket{tokens: float64(l.Burst), last: now}
		l.buckets[key] = b
	}
	b.tokens += now.Sub(b.last).Seconds() * l.Rate
	if b.tokens > float64(l.Burst) {
		b.tokens = float64(l.Burst)
	}
	b.last = now
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}

// sweep drops the buckets that are full again, as a new one would be the same.
// It does so once in the time that an empty bucket takes to fill. l.mu is held.
func (l *Limiter) sweep(now time.Time) {
	if l.Rate <= 0 {
		return
	}
	fill := float64(l.Burst) / l.Rate
	if now.Sub(l.swept).Seconds() < fill {
		return
	}
	l.swept = now
	for key, b := range l.buckets {
		if now.Sub(b.last).Seconds() >= fill {
			delete(l.buckets, key)
		}
	}
}

// Middleware answers 429 when the remote address asks too often.
func (l *Limiter) Middleware(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !l.Allow(r.RemoteAddr) {
			w.Header().Set("Retry-After", fmt.Sprintf("%.0f", 1/l.Rate))
			http.Error(w, "slow down\n", http.StatusTooManyRequests)
			return
		}
		next.ServeHTTP(w, r)
	})
}
