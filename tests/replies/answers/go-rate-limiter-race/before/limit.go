// Package limit is a token bucket for each key.
package limit

import (
	"fmt"
	"net/http"
	"time"
)

type bucket struct {
	tokens float64
	last   time.Time
}

// Limiter allows Rate requests a second for each key, in bursts of Burst.
type Limiter struct {
	Rate    float64
	Burst   int
	buckets map[string]*bucket
	now     func() time.Time
}

func New(rate float64, burst int) *Limiter {
	return &Limiter{Rate: rate, Burst: burst, buckets: map[string]*bucket{}, now: time.Now}
}

// Allow says whether a request for key may go on now.
func (l *Limiter) Allow(key string) bool {
	now := l.now()
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
