package controller_test

import (
	"context"
	"sync"
	"testing"

	"github.com/anykind/anykind/controller"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// TestOperator_RecreatedObjectIsDeletedAndAdded replaces an object by others of its name while its handler is busy.
func TestOperator_RecreatedObjectIsDeletedAndAdded(t *testing.T) {
	for name, recreations := range map[string]int{"once": 1, "twice": 2} {
		t.Run(name, func(t *testing.T) {
			client, namespace := newNamespace(t)
			configMaps := resource(t, client, "cm").In(namespace)
			create := func(name string) types.UID {
				obj, err := configMaps.Create(t.Context(), object("ConfigMap", name), nil)
				require.NoError(t, err)
				return obj.GetUID()
			}
			type event struct {
				kind watch.EventType
				uid  types.UID
			}
			first := create("web")
			events, inHand, finish := make(chan event, 10), make(chan struct{}), make(chan struct{})
			var once sync.Once
			operator := controller.NewOperator(client, &controller.Options{Workers: 2})
			operator.Watch("", "v1", "configmaps", func(_ context.Context, e controller.ResourceEvent) error {
				switch e.Object.GetName() {
				case "sign":
					close(finish) // what was done to the other before has been seen, too
				case "web":
					once.Do(func() { close(inHand); <-finish })
					events <- event{e.Type, e.Object.GetUID()}
				}
				return nil
			}, namespace)
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- operator.Run(ctx) }()
			take(t, inHand)
			last := first
			for range recreations {
				_, err := configMaps.Delete(t.Context(), "web", nil)
				require.NoError(t, err)
				last = create("web")
			}
			create("sign")
			assert.Equal(t, event{watch.Added, first}, take(t, events))
			assert.Equal(t, event{watch.Deleted, first}, take(t, events))
			assert.Equal(t, event{watch.Added, last}, take(t, events))
			cancel()
			require.ErrorIs(t, take(t, ended), context.Canceled)
		})
	}
}
