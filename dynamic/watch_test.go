package dynamic_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/scripted"
)

func TestWatch_EndsWhenServerCloses(t *testing.T) {
	client, _ := script(t, `{"type":"ADDED","object":`+podReply+`}
{"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"12"}}}
`)
	var got []string
	for event, err := range resource(t, client, "pods").Watch(t.Context(), nil) {
		require.NoError(t, err)
		got = append(got, string(event.Type)+" "+event.Object.GetResourceVersion())
	}
	assert.Equal(t, []string{"ADDED 7", "BOOKMARK 12"}, got)
}

func TestWatch_ErrorReason(t *testing.T) {
	const added = `{"type":"ADDED","object":` + podReply + `}`
	for name, tc := range map[string]struct {
		reply string
		is    func(error) bool
	}{
		"expired":      {added + `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}}`, apierrors.IsResourceExpired},
		"cut":          {added + `{"type":"ADDED","obj`, func(err error) bool { return errors.Is(err, io.ErrUnexpectedEOF) }},
		"not JSON":     {added + `<html>`, func(err error) bool { return !errors.Is(err, io.EOF) }},
		"not a Status": {added + `{"type":"ERROR","object":` + podReply + `}`, func(err error) bool { return strings.Contains(err.Error(), `a "Pod", not a Status`) }},
		"unknown type": {added + `{"type":"MOVED","object":` + podReply + `}`, func(err error) bool { return err.Error() != "" }},
	} {
		t.Run(name, func(t *testing.T) {
			client, _ := script(t, tc.reply)
			var events, failures int
			var last error
			for _, err := range resource(t, client, "pods").Watch(t.Context(), nil) {
				if err != nil {
					failures++
					last = err
					continue // the error is the last value even if the caller continues
				}
				events++
			}
			assert.Equal(t, 1, events)
			assert.Equal(t, 1, failures)
			assert.True(t, tc.is(last), "%v", last)
		})
	}
}

// stalling serves body and then nothing until the client disconnects, which closes left.
func stalling(t *testing.T, body string) (pods *dynamic.Resource, left chan struct{}) {
	t.Helper()
	left = make(chan struct{})
	server := scripted.New(resources)
	server.Handle("", func(w http.ResponseWriter, r *http.Request) {
		scripted.Watch(body)(w, r)
		close(left)
	})
	return resource(t, serveClient(t, server, nil), "pods"), left
}

func TestWatch_YieldsEventImmediately(t *testing.T) {
	pods, left := stalling(t, `{"type":"ADDED","object":`+podReply+`}`)
	for event, err := range pods.Watch(t.Context(), nil) {
		require.NoError(t, err)
		assert.Equal(t, watch.Added, event.Type)
		break
	}
	<-left // break closed the connection
}

func TestWatch_EndsWithContext(t *testing.T) {
	pods, left := stalling(t, `{"type":"ADDED","object":`+podReply+`}`)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var last error
	for _, err := range pods.Watch(ctx, nil) {
		cancel()
		last = err
	}
	require.ErrorIs(t, last, context.Canceled)
	<-left
}
