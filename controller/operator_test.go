package controller_test

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/controller"
	"github.com/anykind/anykind/internal/testing/controllertest"
	"github.com/anykind/anykind/unstructured"
)

// TestOperator_RecreatedObjectIsDeletedAndAdded replaces an object by others of its name while its handler is busy.
func TestOperator_RecreatedObjectIsDeletedAndAdded(t *testing.T) {
	for name, recreations := range map[string]int{"once": 1, "twice": 2} {
		t.Run(name, func(t *testing.T) {
			client, namespace := controllertest.NewNamespace(t)
			configMaps := controllertest.Resource(t, client, "cm").Namespace(namespace)
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
			events := make(chan event, 10)
			inHand := make(chan struct{})
			finish := make(chan struct{})
			var once sync.Once
			operator := controller.NewOperator(&controller.Options{Workers: 2})
			operator.Watch(configMaps, func(_ context.Context, e cache.Change[unstructured.Object]) error {
				switch e.Object.GetName() {
				case "sign":
					close(finish) // what was done to the other before has been seen, too
				case "web":
					once.Do(func() { close(inHand); <-finish })
					events <- event{e.Type, e.Object.GetUID()}
				}
				return nil
			})
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- operator.Run(ctx) }()
			receive(t, inHand)
			last := first
			for range recreations {
				_, err := configMaps.Delete(t.Context(), "web", nil)
				require.NoError(t, err)
				last = create("web")
			}
			create("sign")
			assert.Equal(t, event{watch.Added, first}, receive(t, events))
			assert.Equal(t, event{watch.Deleted, first}, receive(t, events))
			assert.Equal(t, event{watch.Added, last}, receive(t, events))
			cancel()
			require.ErrorIs(t, receive(t, ended), context.Canceled)
		})
	}
}
