//go:build unix

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const churnWorkers = 8

// churn changes objects at the rate of the options until ctx ends: eight of ten changes are patches, the rest deletes an object
// or creates a deleted object. Changes that fail while the server is unavailable are skipped.
func (w *world) churn(ctx context.Context) {
	var all sync.WaitGroup
	for worker := range uint64(churnWorkers) {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(w.opts.seed, 100+worker)) //nolint:gosec // a load that can be repeated
			ticker := time.NewTicker(churnWorkers * time.Second / time.Duration(w.opts.rate))
			defer ticker.Stop()
			for {
				select {
				case <-ticker.C:
				case <-ctx.Done():
					return
				}
				if w.change(ctx, rng) == nil {
					w.changes.Add(1)
				}
			}
		})
	}
	all.Wait()
}

// change makes a single change.
func (w *world) change(ctx context.Context, rng *rand.Rand) error {
	r := w.resources[rng.IntN(len(w.resources))]
	n := rng.IntN(w.objectsOf(r))
	kind := rng.IntN(10)
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if kind == 0 {
		return w.put(ctx, r, n)
	}
	handle := w.handle(r, n)
	if kind == 1 {
		_, err := handle.Delete(ctx, objectName(n), &metav1.DeleteOptions{})
		return err
	}
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"changed":"%d"},"labels":{%q:"%d"}}}`, time.Now().UnixNano(), tierLabel, rng.IntN(3))
	_, err := handle.Patch(ctx, objectName(n), types.MergePatchType, patch, nil)
	return err
}
