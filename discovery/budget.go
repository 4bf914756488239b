package discovery

import (
	"context"
	"sync"
	"time"

	"github.com/anykind/anykind/internal/retry"
)

// Lookups of unknown names may cause this many requests at once and a second, as discovery by kubectl may.
const (
	budgetBurst = 300
	budgetRate  = 50
)

// requestBudget bounds the requests that lookups of unknown names cause (a token bucket). The zero value is full. It is
// safe for concurrent use.
type requestBudget struct {
	mu    sync.Mutex
	spent float64 // at the time of at
	at    time.Time
}

// refill is called with mu held.
func (b *requestBudget) refill(now time.Time) {
	b.spent = max(0, b.spent-budgetRate*now.Sub(b.at).Seconds())
	b.at = now
}

// take spends n requests if the budget has them.
func (b *requestBudget) take(n int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refill(time.Now())
	if b.spent+float64(n) > budgetBurst {
		return false
	}
	b.spent += float64(n)
	return true
}

// wait spends n requests, and sleeps until the budget has them.
func (b *requestBudget) wait(ctx context.Context, n int) error {
	b.mu.Lock()
	b.refill(time.Now())
	b.spent += float64(n)
	excess := b.spent - budgetBurst
	b.mu.Unlock()
	if excess <= 0 {
		return nil
	}
	return retry.Sleep(ctx, time.Duration(excess/budgetRate*float64(time.Second)))
}
