package controller_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/controller"
	"github.com/anykind/anykind/internal/testing/controllertest"
	"github.com/anykind/anykind/internal/testing/scripted"
	"github.com/anykind/anykind/unstructured"
)

// newRelistServer returns a server with a lease in the first list, and none in later lists.
func newRelistServer() *scripted.Server {
	const lease = `{"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{"namespace":"shop","name":"web","uid":"u","resourceVersion":"1","labels":{"a":"b"}}}`
	server := scripted.New(controllertest.Resources)
	server.Handle("WATCH "+leasesPath,
		scripted.JSON(scripted.Event("ADDED", lease)+scripted.InitialEventsEnd("coordination.k8s.io/v1", "Lease", "2")+scripted.ExpiredEvent()),
		scripted.Watch(scripted.InitialEventsEnd("coordination.k8s.io/v1", "Lease", "9")))
	server.Handle(definitionRoute, scripted.Status(http.StatusForbidden, "Forbidden"))
	return server
}

func TestOperator_FinalStateUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := controllertest.Serve(t, newRelistServer())
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		var events []cache.Change[unstructured.Object]
		operator := controller.NewOperator(nil)
		operator.Watch(controllertest.Resource(t, client, "leases").Namespace("shop"), func(_ context.Context, event cache.Change[unstructured.Object]) error {
			if events = append(events, event); len(events) == 2 {
				cancel()
			}
			return nil
		})
		require.ErrorIs(t, operator.Run(ctx), context.Canceled)
		require.Len(t, events, 2)
		assert.Equal(t, watch.Added, events[0].Type)
		assert.False(t, events[0].FinalStateUnknown)
		assert.Equal(t, watch.Deleted, events[1].Type)
		assert.True(t, events[1].FinalStateUnknown)
		assert.Equal(t, "b", events[1].Object.GetLabels()["a"], "the last state that was known")
	})
}
