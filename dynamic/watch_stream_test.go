package dynamic_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

func TestOpenWatch_ReadsToEnd(t *testing.T) {
	client, server := script(t, `{"type":"ADDED","object":`+podReply+`}{"type":"DELETED","object":`+podReply+`}`)
	stream, err := resource(t, client, "pods").Named("web").OpenWatch(t.Context(), &metav1.ListOptions{ResourceVersion: "5"})
	require.NoError(t, err)
	for _, want := range []watch.EventType{watch.Added, watch.Deleted} {
		event, err := stream.Next()
		require.NoError(t, err)
		assert.Equal(t, want, event.Type)
		assert.Equal(t, "web", event.Object.GetName())
	}
	for range 2 {
		_, err = stream.Next()
		assert.Equal(t, io.EOF, err, "the server closed the stream")
	}
	stream.Close()
	_, err = stream.Next()
	assert.Equal(t, io.EOF, err, "the reason stays the same")
	assert.Equal(t, []string{"GET /api/v1/namespaces/home/pods?fieldSelector=metadata.name%3Dweb&resourceVersion=5&watch=true"}, server.seen())
}

func TestOpenWatch_Rejected(t *testing.T) {
	pods, _ := exchanging(t, refuses(http.StatusGone, "Expired"))
	stream, err := pods.OpenWatch(t.Context(), &metav1.ListOptions{ResourceVersion: "1"})
	require.True(t, apierrors.IsResourceExpired(err), "%v", err)
	assert.Nil(t, stream)
	_, err = pods.OpenWatch(t.Context(), &metav1.ListOptions{LabelSelector: "a in"})
	var invalid *dynamic.InvalidRequestError
	require.ErrorAs(t, err, &invalid)
}

func TestOpenWatch_ReturnsBeforeFirstEvent(t *testing.T) {
	pods, left := stalling(t, "")
	stream, err := pods.OpenWatch(t.Context(), nil)
	require.NoError(t, err)
	stream.Close()
	<-left
	_, err = stream.Next()
	require.ErrorIs(t, err, net.ErrClosed)
}

func TestWatchStream_NothingAfterClose(t *testing.T) {
	client, _ := script(t, `{"type":"ADDED","object":`+podReply+`}{"type":"MODIFIED","object":`+podReply+`}`)
	stream, err := resource(t, client, "pods").OpenWatch(t.Context(), nil)
	require.NoError(t, err)
	_, err = stream.Next()
	require.NoError(t, err)
	stream.Close()
	for range 2 {
		_, err = stream.Next()
		require.ErrorIs(t, err, net.ErrClosed, "also if the next event is read already")
	}
}

func TestWatchStream_CloseUnblocksNext(t *testing.T) {
	pods, left := stalling(t, `{"type":"ADDED","object":`+podReply+`}`)
	stream, err := pods.OpenWatch(t.Context(), nil)
	require.NoError(t, err)
	_, err = stream.Next()
	require.NoError(t, err)
	waiting := make(chan error)
	go func() {
		_, err := stream.Next()
		waiting <- err
	}()
	stream.Close()
	err = <-waiting
	require.ErrorIs(t, err, net.ErrClosed)
	require.EqualError(t, err, "watch pods: the stream is closed: use of closed network connection")
	<-left
}

func TestWatchStream_ContextEnds(t *testing.T) {
	pods, left := stalling(t, "")
	ctx, cancel := context.WithCancel(t.Context())
	stream, err := pods.OpenWatch(ctx, nil)
	require.NoError(t, err)
	defer stream.Close()
	cancel()
	_, err = stream.Next()
	require.ErrorIs(t, err, context.Canceled)
	<-left
}

func TestWatchStream_ErrorEventIsStatus(t *testing.T) {
	client, _ := script(t, `{"type":"ADDED","object":`+podReply+`}{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure",`+
		`"message":"too old","reason":"Expired","code":410,"details":{"retryAfterSeconds":3}}}{"type":"ADDED","object":`+podReply+`}`)
	stream, err := dynamic.As[unstructured.Lazy](resource(t, client, "pods")).OpenWatch(t.Context(), nil)
	require.NoError(t, err)
	defer stream.Close()
	_, err = stream.Next()
	require.NoError(t, err)
	for range 2 { // there is nothing after it
		_, err = stream.Next()
		var status *apierrors.StatusError
		require.ErrorAs(t, err, &status)
		assert.Equal(t, metav1.Status{
			TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Message: "too old",
			Reason: metav1.StatusReasonExpired, Code: http.StatusGone, Details: &metav1.StatusDetails{RetryAfterSeconds: 3},
		}, status.ErrStatus)
	}
}

func TestWatchStream_ConnectionBreaks(t *testing.T) {
	client, _ := script(t, `{"type":"ADDED","obj`)
	stream, err := resource(t, client, "pods").OpenWatch(t.Context(), nil)
	require.NoError(t, err)
	defer stream.Close()
	_, err = stream.Next()
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	var status *apierrors.StatusError
	assert.NotErrorAs(t, err, &status)
}
