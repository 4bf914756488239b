package webhook_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/controller/webhook"
	"github.com/anykind/anykind/internal/testing/controllertest"
	"github.com/anykind/anykind/unstructured"
)

func widgetOf(version string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "example.com", Version: version, Kind: "Widget"}
}

// oldWidget has its size as text.
type oldWidget struct {
	metav1.ObjectMeta `json:"metadata"`
	Size              string `json:"size"`
}

// conversions converts widgets along v1alpha1, v1 and v2, in both directions between v1 and v2.
func conversions() []webhook.Conversion {
	return []webhook.Conversion{
		webhook.Between(widgetOf("v1alpha1"), "v1", func(_ context.Context, old *oldWidget) (*unstructured.Object, error) {
			switch old.Size {
			case "error":
				return nil, errors.New("no such size")
			case "panic":
				panic("out of order")
			}
			return &unstructured.Object{Object: map[string]any{"size": old.Size}}, nil
		}),
		webhook.Between(widgetOf("v1"), "v2", func(_ context.Context, obj *unstructured.Object) (*widget, error) {
			w := &widget{}
			w.Labels = map[string]string{"from": "v1"}
			w.Name = "ignored"
			_, err := fmt.Sscan(obj.Object["size"].(string), &w.Spec.Size) //nolint:forcetypeassert // the tests'
			return w, err
		}),
		webhook.Between(widgetOf("v2"), "v1", func(_ context.Context, w *widget) (*oldWidget, error) {
			return &oldWidget{w.ObjectMeta, fmt.Sprint(w.Spec.Size)}, nil
		}),
	}
}

// TestConvert_LargeList converts more than an admission may have.
func TestConvert_LargeList(t *testing.T) {
	object := `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"web"},"size":"3","text":"` + strings.Repeat("x", 1<<20) + `"}`
	objects := strings.Repeat(","+object, 8)[1:]
	review := `{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{"uid":"7","desiredAPIVersion":"example.com/v2","objects":[` + objects + `]}}`
	code, got := post(t, webhook.Convert(conversions(), nil), "", review)
	require.Equal(t, http.StatusOK, code, got)
	assert.Equal(t, 8, strings.Count(got, `"spec":{"size":3}`))
	code, got = post(t, webhook.Convert(conversions(), &webhook.Options{MaxBody: 1 << 20}), "", review)
	assert.Equal(t, http.StatusRequestEntityTooLarge, code, got)
}

func TestConvert_GoldenReviews(t *testing.T) {
	for name, tc := range map[string]struct{ to, objects, want string }{
		"one step":            {"v1", `{"apiVersion":"example.com/v2","kind":"Widget","metadata":{"name":"web","annotations":{"a":"b"}},"spec":{"size":3}}`, `"convertedObjects":[{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"annotations":{"a":"b"},"name":"web"},"size":"3"}],"result":{"metadata":{},"status":"Success"}`},
		"chain":               {"v2", `{"apiVersion":"example.com/v1alpha1","kind":"Widget","metadata":{"name":"web","uid":"1","finalizers":["a"]},"size":"3"}`, `"convertedObjects":[{"apiVersion":"example.com/v2","kind":"Widget","metadata":{"finalizers":["a"],"labels":{"from":"v1"},"name":"web","uid":"1"},"spec":{"size":3},"status":{}}],"result":{"metadata":{},"status":"Success"}`},
		"same version":        {"v2", `{"apiVersion":"example.com/v2","kind":"Widget","metadata":{"name":"web"},"x":1.5}`, `"convertedObjects":[{"apiVersion":"example.com/v2","kind":"Widget","metadata":{"name":"web"},"x":1.5}],"result":{"metadata":{},"status":"Success"}`},
		"none":                {"v2", ``, `"convertedObjects":[],"result":{"metadata":{},"status":"Success"}`},
		"no way":              {"v1alpha1", `{"apiVersion":"example.com/v2","kind":"Widget","metadata":{"name":"web"}}`, `"convertedObjects":null,"result":{"metadata":{},"code":500,"reason":"InternalError","status":"Failure","message":"convert example.com/v2, Kind=Widget \"web\" to example.com/v1alpha1: the webhook has no conversion"}`},
		"error of a step":     {"v2", `{"apiVersion":"example.com/v1alpha1","kind":"Widget","metadata":{"name":"web"},"size":"error"}`, `"convertedObjects":null,"result":{"metadata":{},"code":500,"reason":"InternalError","status":"Failure","message":"convert Widget \"web\" to v1: no such size"}`},
		"panic":               {"v2", `{"apiVersion":"example.com/v1alpha1","kind":"Widget","metadata":{"name":"web"},"size":"panic"}`, `"convertedObjects":null,"result":{"metadata":{},"code":500,"reason":"InternalError","details":{"causes":[{"message":"the webhook panicked"}]},"status":"Failure","message":"Internal error occurred: the webhook panicked"}`},
		"object of no kind":   {"v2", `{}`, `"convertedObjects":null,"result":{"metadata":{},"code":500,"reason":"InternalError","status":"Failure","message":"decode an object: Object 'Kind' is missing in '{apiVersion: \"\", metadata.name: \"\", fields: 0}'"}`},
		"object is no object": {"v2", `[]`, `"convertedObjects":null,"result":{"metadata":{},"code":500,"reason":"InternalError","status":"Failure","message":"decode an object: invalid JSON at byte 0: '[' where an object should begin"}`},
	} {
		log, _ := controllertest.Logger()
		h := webhook.Convert(conversions(), &webhook.Options{Logger: log})
		code, got := post(t, h, "", fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{"uid":"7","desiredAPIVersion":"example.com/%s","objects":[%s]}}`, tc.to, tc.objects))
		require.Equal(t, http.StatusOK, code)
		assert.JSONEq(t, `{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","response":{"uid":"7",`+tc.want+`}}`, got, name)
	}
}
