package dynamic_test

import (
	"net/http"
	"testing"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	acceptsPartial  = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json"
	acceptsPartials = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json"

	partial = `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"web"}}`
	whole   = `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web"},"spec":{"nodeName":"n"},"status":{}}`
)

// metadataVerbs are all verbs whose answers have a form, each returning the objects that it was answered with.
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

// answeredTo is how a server answers a verb with one object.
func answeredTo(verb, kind, obj string) string {
	switch verb {
	case "list", "list page", "deletecollection":
		return `{"kind":"` + kind + `List","apiVersion":"v1","metadata":{},"items":[` + obj + `]}`
	case "watch":
		return `{"type":"ADDED","object":` + obj + `}`
	default:
		return obj
	}
}

func TestMetadataIsAskedForAndPromisedWhateverTheServerSends(t *testing.T) {
	want, err := unstructured.Decode([]byte(partial))
	require.NoError(t, err)
	for verb, call := range metadataVerbs(t) {
		for _, reply := range []string{answeredTo(verb, "PartialObjectMetadata", partial), answeredTo(verb, "Pod", whole)} {
			pods, server := exchanging(t, says(reply))
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

func TestAServerThatRefusesMetadataIsAskedForAllButNothingIsWrittenTwice(t *testing.T) {
	for verb, call := range metadataVerbs(t) {
		pods, server := exchanging(t, refuses(http.StatusNotAcceptable, "NotAcceptable"), says(answeredTo(verb, "Pod", whole)))
		got, err := call(pods.Metadata())
		switch verb {
		case "get", "list", "list page", "watch":
			require.NoError(t, err, verb)
			assert.Equal(t, "PartialObjectMetadata", got[0].GetKind(), verb)
			assert.Len(t, server.accepted(), 2)
			assert.Equal(t, "application/json", server.accepted()[1])
		default:
			assert.True(t, apierrors.IsNotAcceptable(err), "%s: %v", verb, err)
			assert.Len(t, server.seen(), 1, verb)
		}
	}
}

func TestWhatDeleteAnswersOfAnObjectIsAStatusForMetadataToo(t *testing.T) {
	pods, _ := exchanging(t, says(`{"kind":"Status","apiVersion":"v1","status":"Success","details":{"name":"web","uid":"u"}}`))
	deleted, err := pods.Metadata().Delete(t.Context(), "web", nil)
	require.NoError(t, err)
	require.Nil(t, deleted.Object)
	assert.EqualValues(t, "u", deleted.Status.Details.UID)
}

func TestMetadataAloneIsNeverWritten(t *testing.T) {
	pods, server := exchanging(t, says(partial))
	read, err := pods.Metadata().Get(t.Context(), "web", nil)
	require.NoError(t, err)
	for _, of := range []*dynamic.Resource{pods, pods.Metadata(), pods.Sub("status")} {
		_, err = of.Update(t.Context(), read, nil)
		var refused *dynamic.RefusedError
		require.ErrorAs(t, err, &refused)
		require.ErrorContains(t, err, "the object is metadata alone, and writing it would empty the stored one: use Patch, or read it without Metadata")
	}
	assert.Len(t, server.seen(), 1)
}
