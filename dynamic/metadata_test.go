package dynamic_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

const (
	acceptsPartial  = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json"
	acceptsPartials = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json"

	partial = `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"web"}}`
	// metadataOnly is the result for either.
	metadataOnly = `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web"}}`
	whole        = `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web"},"spec":{"nodeName":"n"},"status":{}}`
)

// metadataVerbs returns all verbs whose responses have a representation.
func metadataVerbs(t *testing.T) map[string]func(pods *dynamic.Resource) ([]*unstructured.Object, error) {
	one := func(obj *unstructured.Object, err error) ([]*unstructured.Object, error) {
		return []*unstructured.Object{obj}, err
	}
	return map[string]func(*dynamic.Resource) ([]*unstructured.Object, error){
		"get": func(pods *dynamic.Resource) ([]*unstructured.Object, error) {
			return one(pods.Get(t.Context(), "web", nil))
		},
		"create": func(pods *dynamic.Resource) ([]*unstructured.Object, error) {
			return one(pods.Create(t.Context(), object("Pod", "web"), nil))
		},
		"update": func(pods *dynamic.Resource) ([]*unstructured.Object, error) {
			return one(pods.Update(t.Context(), object("Pod", "web"), nil))
		},
		"patch": func(pods *dynamic.Resource) ([]*unstructured.Object, error) {
			return one(pods.Patch(t.Context(), "web", types.MergePatchType, []byte(`{}`), nil))
		},
		"apply": func(pods *dynamic.Resource) ([]*unstructured.Object, error) {
			return one(pods.Apply(t.Context(), object("Pod", "web"), &metav1.ApplyOptions{FieldManager: "me"}))
		},
		"delete": func(pods *dynamic.Resource) ([]*unstructured.Object, error) {
			deleted, err := pods.Delete(t.Context(), "web", nil)
			if err != nil {
				return nil, err
			}
			return one(deleted.Object, nil)
		},
		"watch": func(pods *dynamic.Resource) (all []*unstructured.Object, err error) {
			for event, err := range pods.Watch(t.Context(), nil) {
				if err != nil {
					return nil, err
				}
				all = append(all, event.Object)
			}
			return all, nil
		},
		"list": func(pods *dynamic.Resource) (all []*unstructured.Object, err error) {
			for obj, err := range pods.List(t.Context(), nil) {
				if err != nil {
					return nil, err
				}
				all = append(all, obj)
			}
			return all, nil
		},
		"list page": func(pods *dynamic.Resource) ([]*unstructured.Object, error) {
			page, err := pods.ListPage(t.Context(), nil)
			if err != nil {
				return nil, err
			}
			return page.Items, nil
		},
		"deletecollection": func(pods *dynamic.Resource) ([]*unstructured.Object, error) {
			page, err := pods.DeleteCollection(t.Context(), nil, nil)
			if err != nil {
				return nil, err
			}
			return page.Items, nil
		},
	}
}

// responseTo returns the response to a verb with one object.
func responseTo(verb, kind, obj string) string {
	switch verb {
	case "list", "list page", "deletecollection":
		apiVersion := "v1"
		if kind == "PartialObjectMetadata" {
			apiVersion = "meta.k8s.io/v1"
		}
		return `{"kind":"` + kind + `List","apiVersion":"` + apiVersion + `","metadata":{},"items":[` + obj + `]}`
	case "watch":
		return `{"type":"ADDED","object":` + obj + `}`
	default:
		return obj
	}
}

func TestMetadata_OfPartialAndWholeObjects(t *testing.T) {
	want, err := unstructured.Decode([]byte(metadataOnly))
	require.NoError(t, err)
	for verb, call := range metadataVerbs(t) {
		for _, reply := range []string{responseTo(verb, "PartialObjectMetadata", partial), responseTo(verb, "Pod", whole)} {
			pods, server := exchanging(t, respond(reply))
			got, err := call(pods.Metadata())
			require.NoError(t, err, verb)
			assert.Equal(t, []*unstructured.Object{want}, got, verb)
			accept := acceptsPartial
			if verb == "list" || verb == "list page" || verb == "deletecollection" {
				accept = acceptsPartials
			}
			assert.Equal(t, []string{accept}, server.accepted(), verb)
		}
	}
}

func TestMetadata_NotAcceptableRetriesReadsOnly(t *testing.T) {
	for verb, call := range metadataVerbs(t) {
		pods, server := exchanging(t, refuses(http.StatusNotAcceptable, "NotAcceptable"), respond(responseTo(verb, "Pod", whole)))
		got, err := call(pods.Metadata())
		switch verb {
		case "get", "list", "list page", "watch":
			require.NoError(t, err, verb)
			assert.Equal(t, "Pod", got[0].GetKind(), verb)
			assert.Len(t, got[0].Object, 3, verb)
			assert.Len(t, server.accepted(), 2)
			assert.Equal(t, "application/json", server.accepted()[1])
		default:
			assert.True(t, apierrors.IsNotAcceptable(err), "%s: %v", verb, err)
			assert.Len(t, server.seen(), 1, verb)
		}
	}
}

func TestMetadata_DeleteReturnsStatus(t *testing.T) {
	pods, _ := exchanging(t, respond(`{"kind":"Status","apiVersion":"v1","status":"Success","details":{"name":"web","uid":"u"}}`))
	deleted, err := pods.Metadata().Delete(t.Context(), "web", nil)
	require.NoError(t, err)
	require.Nil(t, deleted.Object)
	assert.EqualValues(t, "u", deleted.Status.Details.UID)
}

const (
	managedPartial = `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"web","managedFields":[` +
		`{"manager":"kubelet","subresource":"status","fieldsV1":{"f:status":{"f:phase":{}}}},` +
		`{"manager":"kubectl","fieldsV1":{"f:metadata":{"f:labels":{".":{}}},"f:spec":{"f:nodeName":{}}}}]}}`
	// unmanagedPartial has no fields but its status.
	unmanagedPartial = `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"web","managedFields":[` +
		`{"manager":"kubelet","subresource":"status","fieldsV1":{"f:status":{"f:phase":{}}}},` +
		`{"manager":"kubectl","fieldsV1":{"f:metadata":{"f:labels":{".":{}}}}}]}}`
)

func TestUpdate_RejectsMetadataOnly(t *testing.T) {
	const refusal = "the object is metadata only, and writing it would empty the stored one (use Patch, or read it without Metadata"
	for _, c := range []struct {
		name, read string
		sub        string
		change     func(*unstructured.Object)
		invalid    bool
	}{
		{"of fields", managedPartial, "", nil, true},
		{"of a status", managedPartial, "status", nil, true},
		{"of fields that are there", managedPartial, "", func(obj *unstructured.Object) { obj.Object["spec"] = map[string]any{} }, false},
		{"of an object without fields", unmanagedPartial, "", nil, false},
		{"of the status of an object without fields", unmanagedPartial, "status", nil, true},
		{"of another client", managedPartial, "", func(obj *unstructured.Object) {
			obj.SetAPIVersion("meta.k8s.io/v1")
			obj.SetKind("PartialObjectMetadata")
		}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			pods, server := exchanging(t, respond(c.read), respond(whole), respond(whole), respond(whole))
			read, err := pods.Metadata().Get(t.Context(), "web", nil)
			require.NoError(t, err)
			if c.change != nil {
				c.change(read)
			}
			typed, err := unstructured.As[metav1.PartialObjectMetadata](read)
			require.NoError(t, err)
			for name, update := range map[string]func() error{
				"plain":    func() error { _, err := pods.Subresource(c.sub).Update(t.Context(), read, nil); return err },
				"metadata": func() error { _, err := pods.Metadata().Subresource(c.sub).Update(t.Context(), read, nil); return err },
				"typed": func() error {
					_, err := dynamic.As[metav1.PartialObjectMetadata](pods.Subresource(c.sub)).Update(t.Context(), typed, nil)
					return err
				},
			} {
				if name == "typed" && read.Object["spec"] != nil {
					continue
				}
				err := update()
				if !c.invalid {
					assert.NoError(t, err, name)
					continue
				}
				var invalid *dynamic.InvalidRequestError
				require.ErrorAs(t, err, &invalid, name)
				require.ErrorContains(t, err, refusal, name)
			}
			if c.invalid {
				assert.Len(t, server.seen(), 1)
			}
		})
	}
}

// TestMetadata_KeepsKind covers whole and partial responses, in every Go type.
func TestMetadata_KeepsKind(t *testing.T) {
	for _, sent := range []string{partial, whole} {
		sentKind := map[string]string{partial: "PartialObjectMetadata", whole: "Pod"}[sent]
		pods, _ := exchanging(t, response{body: responseTo("list", sentKind, sent), lasts: time.Hour})
		for lazy, err := range dynamic.As[unstructured.Lazy](pods.Metadata()).List(t.Context(), nil) {
			require.NoError(t, err)
			assert.JSONEq(t, metadataOnly, string(lazy.JSON()))
			assert.Equal(t, "Pod web", lazy.String())
		}
		for typed, err := range dynamic.As[metav1.PartialObjectMetadata](pods.Metadata()).List(t.Context(), nil) {
			require.NoError(t, err)
			assert.Equal(t, metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"}, typed.TypeMeta)
			assert.Equal(t, "web", typed.Name)
		}
		page, err := pods.Metadata().ListPage(t.Context(), nil)
		require.NoError(t, err)
		assert.Equal(t, metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}, page.TypeMeta)
	}
}

func TestClient_ForObjectOfMetadata(t *testing.T) {
	client, server := script(t, partial)
	for name, path := range map[string]string{"pods": "/api/v1/namespaces/home/pods/web", "deploy": "/apis/apps/v1/namespaces/home/deployments/web"} {
		read, err := resource(t, client, name).Metadata().Get(t.Context(), "web", nil)
		require.NoError(t, err)
		of, err := client.ForObject(t.Context(), read)
		require.NoError(t, err)
		_, err = of.Get(t.Context(), "web", nil)
		require.NoError(t, err)
		assert.Equal(t, "GET "+path, server.seen()[len(server.seen())-1])
	}
	scale, err := resource(t, client, "deploy").Subresource("scale").Metadata().Get(t.Context(), "web", nil)
	require.NoError(t, err)
	assert.Equal(t, "autoscaling/v1, Kind=Scale", scale.GroupVersionKind().String(), "a subresource's own kind")
}

func TestHandle_ScaleOfMetadataAndTables(t *testing.T) {
	client, server := script(t, `{"kind":"Scale","apiVersion":"autoscaling/v1","metadata":{"name":"web"},"spec":{"replicas":3}}`)
	deployments := resource(t, client, "deploy")
	for name, scale := range map[string]func(ctx context.Context, name string, replicas int64, opts *metav1.PatchOptions) (*unstructured.Object, error){
		"metadata": deployments.Metadata().Scale, "tables": deployments.Tables("").Scale,
	} {
		scaled, err := scale(t.Context(), "web", 3, nil)
		require.NoError(t, err, name)
		replicas, _, err := unstructured.Get[int64](scaled, "spec", "replicas")
		require.NoError(t, err)
		assert.Equal(t, int64(3), replicas, name)
	}
	for _, request := range server.Requests() {
		if request.Method == http.MethodPatch {
			assert.NotContains(t, request.Accept, "as=")
		}
	}
}
