package controller_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/controller"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/controllertest"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/watch"
)

// relistServer serves one lease in the first list, and none in later ones.
type relistServer struct{ lists atomic.Int32 }

func (s *relistServer) RoundTrip(r *http.Request) (*http.Response, error) {
	header := http.Header{}
	var body io.Reader = strings.NewReader(`{"kind":"APIGroupDiscoveryList","items":[]}`)
	switch {
	case r.URL.Path == "/api" || r.URL.Path == "/apis":
		header.Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
		if r.URL.Path == "/apis" {
			body = strings.NewReader(controllertest.Index)
		}
	case strings.HasPrefix(r.URL.Path, "/apis/apiextensions.k8s.io"):
		return &http.Response{StatusCode: http.StatusForbidden, Header: header, Body: http.NoBody, Request: r}, nil
	default:
		const bookmark = `{"type":"BOOKMARK","object":{"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{"resourceVersion":"%d","annotations":{"k8s.io/initial-events-end":"true"}}}}`
		switch s.lists.Add(1) {
		case 1:
			body = strings.NewReader(`{"type":"ADDED","object":{"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{"namespace":"a","name":"web","uid":"u","resourceVersion":"1","labels":{"a":"b"}}}}` +
				fmt.Sprintf(bookmark, 2) + `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","code":410,"reason":"Expired"}}`)
		default:
			body = io.MultiReader(strings.NewReader(fmt.Sprintf(bookmark, 9)), hangingBody{r.Context()})
		}
	}
	return &http.Response{StatusCode: http.StatusOK, Header: header, Body: io.NopCloser(body), Request: r}, nil
}

// hangingBody is a body that ends with its request.
type hangingBody struct{ ctx context.Context }

func (u hangingBody) Read([]byte) (int, error) {
	<-u.ctx.Done()
	return 0, u.ctx.Err()
}

func TestOperator_FinalStateUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn, err := transport.New("http://memory", &http.Client{Transport: &relistServer{}}, nil)
		require.NoError(t, err)
		client := dynamic.New(conn, nil)
		defer client.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		var events []cache.Change[unstructured.Object]
		operator := controller.NewOperator(nil)
		operator.Watch(controllertest.Resource(t, client, "leases").Namespace("a"), func(_ context.Context, event cache.Change[unstructured.Object]) error {
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
