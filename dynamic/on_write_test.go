package dynamic_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

func TestResource_OnWriteReportsWrites(t *testing.T) {
	const pod = `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web-x","namespace":"shop","uid":"u","resourceVersion":"7"},"status":{"phase":"Running"}}`
	const node = `{"kind":"Node","apiVersion":"v1","metadata":{"name":"n1","uid":"u","resourceVersion":"7"}}`
	written := []dynamic.Write{{Namespace: "shop", Name: "web-x", UID: "u", ResourceVersion: "7"}}
	deleted := []dynamic.Write{{Namespace: "shop", Name: "web"}}
	object := &unstructured.Object{Object: map[string]any{"metadata": map[string]any{"name": "web"}}}
	dryRun := []string{metav1.DryRunAll}
	ctx := t.Context()
	for name, tc := range map[string]struct {
		reply string
		call  func(pods *dynamic.Resource) error
		want  []dynamic.Write
	}{
		"create": {pod, func(pods *dynamic.Resource) error { _, err := pods.Create(ctx, object, nil); return err }, written},
		"update": {pod, func(pods *dynamic.Resource) error { _, err := pods.Update(ctx, object, nil); return err }, written},
		"patch": {pod, func(pods *dynamic.Resource) error {
			_, err := pods.Patch(ctx, "web", types.MergePatchType, []byte(`{}`), nil)
			return err
		}, written},
		"apply": {pod, func(pods *dynamic.Resource) error {
			_, err := pods.Apply(ctx, object, &metav1.ApplyOptions{FieldManager: "test"})
			return err
		}, written},
		"status": {pod, func(pods *dynamic.Resource) error {
			_, err := pods.Subresource("status").Update(ctx, object, nil)
			return err
		}, written},
		"patch that removes the last finalizer": {
			`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web","namespace":"shop","uid":"u","resourceVersion":"7","deletionTimestamp":"2026-01-01T00:00:00Z","deletionGracePeriodSeconds":0}}`,
			func(pods *dynamic.Resource) error {
				_, err := pods.Patch(ctx, "web", types.MergePatchType, []byte(`{}`), nil)
				return err
			}, []dynamic.Write{{Namespace: "shop", Name: "web", UID: "u"}}},
		"patch of an object with another finalizer": {
			`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web-x","namespace":"shop","uid":"u","resourceVersion":"7","deletionTimestamp":"2026-01-01T00:00:00Z","finalizers":["a/b"]}}`,
			func(pods *dynamic.Resource) error {
				_, err := pods.Patch(ctx, "web-x", types.MergePatchType, []byte(`{}`), nil)
				return err
			}, written},
		"patch of a terminating object that is kept without finalizers": {
			`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web-x","namespace":"shop","uid":"u","resourceVersion":"7","deletionTimestamp":"2026-01-01T00:00:00Z"}}`,
			func(pods *dynamic.Resource) error {
				_, err := pods.Patch(ctx, "web-x", types.MergePatchType, []byte(`{}`), nil)
				return err
			}, written},
		"patch while a pod shuts down": {
			`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web-x","namespace":"shop","uid":"u","resourceVersion":"7","deletionTimestamp":"2026-01-01T00:00:00Z","deletionGracePeriodSeconds":30}}`,
			func(pods *dynamic.Resource) error {
				_, err := pods.Patch(ctx, "web-x", types.MergePatchType, []byte(`{}`), nil)
				return err
			}, written},
		"create of a kind with details": {
			`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web-x","namespace":"shop","uid":"u","resourceVersion":"7"},"details":"none"}`,
			func(pods *dynamic.Resource) error { _, err := pods.Create(ctx, object, nil); return err }, written},
		"delete of a kind with details": {
			`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web-x","namespace":"shop","uid":"u","resourceVersion":"7"},"details":["none"]}`,
			func(pods *dynamic.Resource) error { _, err := pods.Delete(ctx, "web-x", nil); return err }, written},
		"typed": {pod, func(pods *dynamic.Resource) error {
			var again []dynamic.Write
			typed := dynamic.As[metav1.PartialObjectMetadata](pods).OnWrite(recordTo(&again))
			_, err := typed.Patch(ctx, "web", types.MergePatchType, []byte(`{}`), nil)
			assert.Equal(t, written, again, "the typed handle's own function")
			return err
		}, written},
		"typed, whose response is no T": {pod, func(pods *dynamic.Resource) error {
			type wrong struct {
				Status int `json:"status"`
			}
			_, err := dynamic.As[wrong](pods).Patch(ctx, "web", types.MergePatchType, []byte(`{}`), nil)
			assert.Error(t, err)
			return nil
		}, written},
		"delete, response with the object": {pod, func(pods *dynamic.Resource) error { _, err := pods.Delete(ctx, "web-x", nil); return err }, written},
		"delete, response with a Status": {`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","details":{"name":"web","kind":"pods","uid":"u"}}`,
			func(pods *dynamic.Resource) error { _, err := pods.Delete(ctx, "web", nil); return err }, []dynamic.Write{{Namespace: "shop", Name: "web", UID: "u"}}},
		"delete, response with nothing": {"", func(pods *dynamic.Resource) error { _, err := pods.Delete(ctx, "web", nil); return err }, deleted},
		"delete, response with a failure": {`{"kind":"Status","apiVersion":"v1","status":"Failure","code":403,"reason":"Forbidden"}`, func(pods *dynamic.Resource) error {
			_, err := pods.Delete(ctx, "web", nil)
			assert.Error(t, err)
			return nil
		}, nil},
		"get": {pod, func(pods *dynamic.Resource) error { _, err := pods.Get(ctx, "web", nil); return err }, nil},
		"create, dry run": {pod, func(pods *dynamic.Resource) error {
			_, err := pods.Create(ctx, object, &metav1.CreateOptions{DryRun: dryRun})
			return err
		}, nil},
		"delete, dry run": {pod, func(pods *dynamic.Resource) error {
			_, err := pods.Delete(ctx, "web", &metav1.DeleteOptions{DryRun: dryRun})
			return err
		}, nil},
		"without a version": {`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web"}}`, func(pods *dynamic.Resource) error { _, err := pods.Create(ctx, object, nil); return err }, nil},
		"evict":             {`{"kind":"Status","apiVersion":"v1","status":"Success"}`, func(pods *dynamic.Resource) error { return pods.Evict(ctx, "web", nil) }, nil},
		"delete collection": {`{"kind":"PodList","apiVersion":"v1","items":[` + pod + `]}`, func(pods *dynamic.Resource) error { _, err := pods.DeleteCollection(ctx, nil, nil); return err }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			client, _ := script(t, tc.reply)
			pods := resource(t, client, "pods")
			var first, second []dynamic.Write
			observed := pods.OnWrite(recordTo(&first)).OnWrite(recordTo(&second)).OnWrite(ignore)
			require.NoError(t, tc.call(observed.Namespace("shop")))
			assert.Equal(t, tc.want, first)
			assert.Equal(t, tc.want, second)
			require.NoError(t, tc.call(pods.Namespace("shop")))
			assert.Equal(t, tc.want, first, "the original handle reports nothing")
		})
	}
	t.Run("cluster-scoped", func(t *testing.T) {
		client, _ := script(t, node)
		nodes := resource(t, client, "nodes")
		var got []dynamic.Write
		_, err := nodes.OnWrite(recordTo(&got)).Create(t.Context(), object, nil)
		require.NoError(t, err)
		assert.Equal(t, []dynamic.Write{{Name: "n1", UID: "u", ResourceVersion: "7"}}, got)
	})
}

// recordTo returns a function for OnWrite that appends each write.
func recordTo(all *[]dynamic.Write) func(context.Context, string, string) func(dynamic.Write) {
	return func(context.Context, string, string) func(dynamic.Write) {
		return func(w dynamic.Write) { *all = append(*all, w) }
	}
}

func ignore(context.Context, string, string) func(dynamic.Write) { return nil }

func TestResource_OnWriteBeginsBeforeRequest(t *testing.T) {
	for name, want := range map[string][]string{
		"pods":  {"home/web", "home/db", "home/"}, // the client's default namespace
		"nodes": {"/web", "/db", "/"},
	} {
		t.Run(name, func(t *testing.T) {
			client, server := script(t, `{"kind":"Status","apiVersion":"v1","status":"Success"}`)
			gvr := schema.GroupVersionResource{Version: "v1", Resource: name}
			var begun []string
			of := client.ForAPIResource(&discovery.Resource{GVR: gvr, Namespaced: name == "pods"}).OnWrite(func(ctx context.Context, namespace, name string) func(dynamic.Write) {
				assert.Equal(t, t.Context(), ctx)
				assert.Len(t, server.seen(), len(begun), "before the request")
				begun = append(begun, namespace+"/"+name)
				return nil
			})
			_, err := of.Delete(t.Context(), "web", nil)
			require.NoError(t, err)
			_, _ = of.Subresource("status").Patch(t.Context(), "db", types.MergePatchType, []byte(`{}`), nil)
			_, _ = of.Create(t.Context(), &unstructured.Object{Object: map[string]any{"metadata": map[string]any{"generateName": "web-"}}}, nil)
			_, _ = of.Get(t.Context(), "web", nil)
			assert.Equal(t, want, begun)
		})
	}
}

func TestFollow_ReportsProgressWhenResumed(t *testing.T) {
	pods, _ := exchanging(t,
		respond(`{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","namespace":"shop","uid":"a","resourceVersion":"3"}}}`+
			`{"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"5","annotations":{"k8s.io/initial-events-end":"true"}}}}`),
		refuses(http.StatusInternalServerError, "InternalError"),
		respond(""),
	)
	var progress []string
	var interruptions []error
	opts := &dynamic.FollowOptions{
		OnProgress: func(version string) {
			if progress = append(progress, version); len(progress) == 2 {
				panic(errResumed)
			}
		},
		OnInterruption: func(i dynamic.Interruption) { interruptions = append(interruptions, i.Err) },
	}
	assert.PanicsWithValue(t, errResumed, func() {
		for change, err := range pods.Follow(t.Context(), opts) {
			require.NoError(t, err, change.Type)
		}
	})
	assert.Equal(t, []string{"5", "5"}, progress)
	require.Len(t, interruptions, 2, "a request that is rejected is no progress")
	assert.True(t, apierrors.IsInternalError(interruptions[1]), "%v", interruptions[1])
}

const errResumed = "resumed without a change"
