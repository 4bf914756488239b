package dynamic_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

func names(t *testing.T, pods *dynamic.Resource, opts *metav1.ListOptions) ([]string, error) {
	t.Helper()
	var got []string
	for pod, err := range pods.List(t.Context(), opts) {
		if err != nil {
			return got, err
		}
		got = append(got, pod.GetKind()+" "+pod.GetName())
	}
	return got, nil
}

func TestListFollowsTheContinueTokenAndSendsNoResourceVersionWithIt(t *testing.T) {
	client, server := script(t,
		`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9","continue":"token=1"},"items":[{"metadata":{"name":"a"}},{"metadata":{"name":"b"}}]}`,
		`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":[{"metadata":{"name":"c"}}]}`)
	opts := &metav1.ListOptions{Limit: 2, ResourceVersion: "9", ResourceVersionMatch: metav1.ResourceVersionMatchExact, LabelSelector: "x"}
	got, err := names(t, resource(t, client, "pods"), opts)
	require.NoError(t, err)
	assert.Equal(t, []string{"Pod a", "Pod b", "Pod c"}, got)
	assert.Equal(t, []string{
		"GET /api/v1/namespaces/home/pods?labelSelector=x&limit=2&resourceVersion=9&resourceVersionMatch=Exact",
		"GET /api/v1/namespaces/home/pods?continue=token%3D1&labelSelector=x&limit=2",
	}, server.seen())
	assert.Empty(t, opts.Continue, "the caller's options stay as they are")
}

func TestAListCanBeRangedOverAgain(t *testing.T) {
	client, _ := script(t, listReply)
	all := resource(t, client, "pods").List(t.Context(), nil)
	for range 2 {
		count := 0
		for _, err := range all {
			require.NoError(t, err)
			count++
		}
		assert.Equal(t, 1, count)
	}
}

func TestListPageReturnsItemsAndTheListsMetadata(t *testing.T) {
	client, _ := script(t, `{"kind":"PodList","apiVersion":"v1","items":[{"metadata":{"name":"a"}}],
		"metadata":{"resourceVersion":"9","continue":"more","remainingItemCount":41}}`)
	page, err := resource(t, client, "pods").ListPage(t.Context(), &metav1.ListOptions{Limit: 1})
	require.NoError(t, err)
	left := int64(41)
	assert.Equal(t, metav1.ListMeta{ResourceVersion: "9", Continue: "more", RemainingItemCount: &left}, page.ListMeta)
	assert.Equal(t, metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}, page.TypeMeta)
	require.Len(t, page.Items, 1)
	assert.Equal(t, "v1", page.Items[0].GetAPIVersion())
}

func TestABrokenAnswerIsAnErrorAndNeverAShortList(t *testing.T) {
	for name, tc := range map[string]struct {
		reply string
		is    error
		items int
	}{
		"cut in an item":       {`{"kind":"PodList","apiVersion":"v1","items":[{"metadata":{"name":"a"}},{"metadata":{"na`, io.ErrUnexpectedEOF, 1},
		"cut between items":    {`{"kind":"PodList","apiVersion":"v1","items":[{"metadata":{"name":"a"}}`, io.ErrUnexpectedEOF, 1},
		"cut before its end":   {`{"kind":"PodList","apiVersion":"v1","items":[{"metadata":{"name":"a"}}]`, io.ErrUnexpectedEOF, 1},
		"an empty answer":      {``, io.ErrUnexpectedEOF, 0},
		"a page":               {`<html>`, nil, 0},
		"one object":           {podReply, nil, 0},
		"a list of other JSON": {`{"kind":"PodList","apiVersion":"v1","items":[1]}`, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			client, _ := script(t, tc.reply)
			got, err := names(t, resource(t, client, "pods"), nil)
			require.ErrorContains(t, err, "list pods: GET http://127.0.0.1")
			if tc.is != nil {
				require.ErrorIs(t, err, tc.is)
			}
			assert.Len(t, got, tc.items)
			_, err = resource(t, client, "pods").ListPage(t.Context(), nil)
			require.Error(t, err)
		})
	}
}

func TestAnAnswerThatIsNoObjectIsAnError(t *testing.T) {
	for _, reply := range []string{``, `<html>`, `[]`, `{}`, podReply + podReply} {
		client, _ := script(t, reply)
		_, err := resource(t, client, "pods").Get(t.Context(), "web", nil)
		require.ErrorContains(t, err, "the answer is no Kubernetes object", reply)
	}
}

func TestDeleteReturnsWhatTheServerAnswered(t *testing.T) {
	client, _ := script(t, `{"kind":"Status","apiVersion":"v1","status":"Success","details":{"name":"web","uid":"u"}}`, podReply)
	pods := resource(t, client, "pods")
	deleted, err := pods.Delete(t.Context(), "web", nil)
	require.NoError(t, err)
	require.Nil(t, deleted.Object)
	assert.EqualValues(t, "u", deleted.Status.Details.UID)

	deleted, err = pods.Delete(t.Context(), "web", nil)
	require.NoError(t, err)
	require.Nil(t, deleted.Status)
	assert.Equal(t, "web", deleted.Object.GetName())
}

func TestDeleteCollectionReturnsWhatTheServerDeleted(t *testing.T) {
	client, _ := script(t, listReply, `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","details":{"kind":"pods"}}`,
		podReply, `{"kind":"PodList","apiVersion":"v1","items":[{"metadata":{"na`)
	pods := resource(t, client, "pods")
	page, err := pods.DeleteCollection(t.Context(), nil, nil)
	require.NoError(t, err)
	assert.Equal(t, []string{"web"}, namesOf(page.Items))
	assert.Equal(t, "9", page.ResourceVersion)

	page, err = pods.DeleteCollection(t.Context(), nil, nil)
	require.NoError(t, err)
	assert.Equal(t, &dynamic.Page[unstructured.Object]{}, page, "a Status names no object")

	for range 2 {
		_, err = pods.DeleteCollection(t.Context(), nil, nil)
		require.ErrorContains(t, err, "deletecollection pods: DELETE http://127.0.0.1")
	}
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
}

func TestWatchYieldsEventsUntilTheServerClosesTheStream(t *testing.T) {
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

func TestAWatchThatEndsBadlySaysHow(t *testing.T) {
	const added = `{"type":"ADDED","object":` + podReply + `}`
	for name, tc := range map[string]struct {
		reply string
		is    func(error) bool
	}{
		"too old":      {added + `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}}`, apierrors.IsResourceExpired},
		"cut":          {added + `{"type":"ADDED","obj`, func(err error) bool { return errors.Is(err, io.ErrUnexpectedEOF) }},
		"broken":       {added + `<html>`, func(err error) bool { return !errors.Is(err, io.EOF) }},
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
					continue // the error must come last even if the caller goes on
				}
				events++
			}
			assert.Equal(t, 1, events)
			assert.Equal(t, 1, failures)
			assert.True(t, tc.is(last), "%v", last)
		})
	}
}

// stalling serves one watch event, or the beginning of a list, and then nothing until the client leaves.
func stalling(t *testing.T, body string) (pods *dynamic.Resource, left chan struct{}) {
	t.Helper()
	left = make(chan struct{})
	discovery := &wire{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api" || r.URL.Path == "/apis" {
			discovery.ServeHTTP(w, r)
			return
		}
		_, _ = io.WriteString(w, body)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		close(left)
	}))
	client, err := dynamic.Connect(t.Context(), &transport.Config{Server: server.URL})
	require.NoError(t, err)
	t.Cleanup(func() { client.Close(); server.Close() })
	return resource(t, client, "pods"), left
}

func TestAnEventIsYieldedAsSoonAsItIsWhole(t *testing.T) {
	pods, left := stalling(t, `{"type":"ADDED","object":`+podReply+`}`)
	for event, err := range pods.Watch(t.Context(), nil) {
		require.NoError(t, err)
		assert.Equal(t, watch.Added, event.Type)
		break
	}
	<-left // leaving the loop closed the connection
}

func TestLeavingAListEarlyClosesItsConnection(t *testing.T) {
	pods, left := stalling(t, `{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[{"metadata":{"name":"a"}},{"metadata":{"name":"b"}},`)
	for pod, err := range pods.List(t.Context(), nil) {
		require.NoError(t, err)
		assert.Equal(t, "a", pod.GetName())
		break
	}
	<-left
}

func TestAWatchEndsWithItsContext(t *testing.T) {
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
