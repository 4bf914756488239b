package controller_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/controller"
	"github.com/anykind/anykind/controller/workqueue"
	"github.com/anykind/anykind/dynamic"
)

// writtenCache is a cache that has all writes.
type writtenCache struct{}

func (writtenCache) RecordWrite(dynamic.Write)                                    {}
func (writtenCache) HasWrites(...types.NamespacedName) bool                       { return true }
func (writtenCache) WaitForWrites(context.Context, ...types.NamespacedName) error { return nil }

func TestRunKeys_AdmitsAndRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		type key struct {
			cluster string
			types.NamespacedName
		}
		web := types.NamespacedName{Namespace: "shop", Name: "web"}
		var mu sync.Mutex
		var reconciled []key
		var results []controller.ReconcileResult
		running := 0
		keys := controller.Keys[key]{
			Enqueue: func(ctx context.Context, queue *workqueue.Queue[key]) error {
				for _, cluster := range []string{"east", "west", "gone", "closed"} {
					queue.Add(key{cluster, web})
				}
				<-ctx.Done()
				return ctx.Err()
			},
			Object: func(k key) (*controller.Objects, types.NamespacedName) {
				if k.cluster == "gone" {
					return nil, types.NamespacedName{}
				}
				return &controller.Objects{Cluster: k.cluster, Cache: writtenCache{}}, k.NamespacedName
			},
			Admit: func(k key, _ int) bool {
				mu.Lock()
				defer mu.Unlock()
				if k.cluster == "closed" {
					return false
				}
				running++
				return true
			},
			Release: func(key) {
				mu.Lock()
				defer mu.Unlock()
				running--
			},
		}
		done := make(chan error, 1)
		go func() {
			done <- controller.RunKeys(ctx, keys, func(_ context.Context, k key) (time.Duration, error) {
				mu.Lock()
				defer mu.Unlock()
				assert.Equal(t, 1, running)
				reconciled = append(reconciled, k)
				if k.cluster == "west" && len(reconciled) < 3 {
					return 0, errors.New("conflict")
				}
				return 0, nil
			}, &controller.Options{
				Logger: slog.New(slog.DiscardHandler),
				OnReconcile: func(result controller.ReconcileResult) {
					mu.Lock()
					defer mu.Unlock()
					results = append(results, result)
				},
			})
		}()
		time.Sleep(time.Minute)
		cancel()
		require.ErrorIs(t, <-done, context.Canceled)
		assert.Equal(t, []key{{"east", web}, {"west", web}, {"west", web}}, reconciled)
		assert.Equal(t, "west", results[1].Cluster)
		assert.Equal(t, web, results[1].Key)
		assert.EqualError(t, results[1].Err, "conflict")
		assert.Zero(t, running)
	})
}

func TestRunKeys_RejectsTriggers(t *testing.T) {
	err := controller.RunKeys(t.Context(), controller.Keys[string]{}, nil, &controller.Options{Triggers: make([]controller.Trigger, 1)})
	assert.EqualError(t, err, "run a controller: Options.Triggers of RunKeys must be empty (add the keys in Keys.Enqueue)")
}
