package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/unstructured"
)

// Conversion converts objects of a kind from a version to a different version; see [Between].
type Conversion struct {
	from      schema.GroupVersionKind
	toVersion string
	convert   func(ctx context.Context, obj *unstructured.Object) (*unstructured.Object, error)
}

// Between returns the conversion of a kind from a version to toVersion, by a function between *unstructured.Object or structs. The
// opposite direction is a Conversion of its own. convert may change and return its argument. It is called concurrently.
//
// The webhook sets apiVersion, kind and metadata, except for labels and annotations: the server accepts no other change of them.
func Between[From, To any](from schema.GroupVersionKind, toVersion string, convert func(ctx context.Context, obj *From) (*To, error)) Conversion {
	return Conversion{from, toVersion, func(ctx context.Context, obj *unstructured.Object) (*unstructured.Object, error) {
		typed, err := unstructured.As[From](obj)
		if err != nil {
			return nil, err
		}
		converted, err := convert(ctx, typed)
		if err != nil {
			return nil, err
		}
		return unstructured.From(converted)
	}}
}

// Convert returns a conversion webhook for CustomResourceDefinitions. An object is converted by the shortest chain of conversions to the
// requested version. An error or a panic of a conversion fails the whole request. See
// https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definition-versioning/.
func Convert(conversions []Conversion, opts *Options) http.Handler {
	return newHandler("apiextensions.k8s.io", "ConversionReview", opts, defaultMaxConversion, func(ctx context.Context, r *conversionRequest) outcome[conversionResponse] {
		response := &conversionResponse{UID: r.UID, Result: metav1.Status{Status: metav1.StatusSuccess}, ConvertedObjects: []*unstructured.Object{}}
		out := outcome[conversionResponse]{uid: r.UID, response: response, code: http.StatusOK}
		for _, data := range r.Objects {
			converted, err := convertObject(ctx, conversions, data, r.DesiredAPIVersion)
			if err != nil {
				response.Result = *statusOf(ctx, err, http.StatusInternalServerError, metav1.StatusReasonInternalError)
				response.ConvertedObjects = nil
				out.code = int(response.Result.Code)
				out.err = err
				return out
			}
			response.ConvertedObjects = append(response.ConvertedObjects, converted)
		}
		return out
	})
}

// conversionRequest is the request of a ConversionReview of apiextensions.k8s.io/v1.
type conversionRequest struct {
	UID               types.UID         `json:"uid"`
	DesiredAPIVersion string            `json:"desiredAPIVersion"`
	Objects           []json.RawMessage `json:"objects"`
}

// conversionResponse is the response of a ConversionReview of apiextensions.k8s.io/v1.
type conversionResponse struct {
	UID              types.UID              `json:"uid"`
	ConvertedObjects []*unstructured.Object `json:"convertedObjects"`
	Result           metav1.Status          `json:"result"`
}

func convertObject(ctx context.Context, conversions []Conversion, data json.RawMessage, apiVersion string) (converted *unstructured.Object, err error) {
	obj, err := unstructured.Decode(data)
	if err != nil {
		return nil, fmt.Errorf("decode an object: %w", err)
	}
	from := obj.GroupVersionKind()
	to, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return nil, err
	}
	chain, found := chainOf(conversions, from, to)
	if !found {
		return nil, fmt.Errorf("convert %s %q to %s: the webhook has no conversion", from.GroupVersion().WithKind(from.Kind), obj.GetName(), apiVersion)
	}
	defer contain(&err, fmt.Sprintf("the conversion of %s %s/%s to %s", from.Kind, obj.GetNamespace(), obj.GetName(), apiVersion))
	converted = obj
	for _, step := range chain {
		metadata := maps.Clone(metadataOf(converted))
		if converted, err = step.convert(ctx, converted); err != nil {
			return nil, fmt.Errorf("convert %s %q to %s: %w", from.Kind, obj.GetName(), step.toVersion, err)
		}
		keepMetadata(metadata, converted)
		converted.SetGroupVersionKind(schema.GroupVersionKind{Group: from.Group, Version: step.toVersion, Kind: from.Kind})
	}
	return converted, nil
}

// chainOf returns the shortest chain of conversions.
func chainOf(conversions []Conversion, from schema.GroupVersionKind, to schema.GroupVersion) ([]Conversion, bool) {
	if from.Group != to.Group {
		return nil, false
	}
	chains := map[string][]Conversion{from.Version: nil}
	for queue := []string{from.Version}; len(queue) > 0; queue = queue[1:] {
		version := queue[0]
		if version == to.Version {
			return chains[version], true
		}
		for _, c := range conversions {
			if _, known := chains[c.toVersion]; !known && c.from == from.GroupKind().WithVersion(version) {
				chains[c.toVersion] = append(slices.Clone(chains[version]), c)
				queue = append(queue, c.toVersion)
			}
		}
	}
	return nil, false
}

func metadataOf(obj *unstructured.Object) map[string]any {
	metadata, _ := obj.Object["metadata"].(map[string]any)
	return metadata
}

// keepMetadata restores the metadata of a converted object, except for its labels and annotations.
func keepMetadata(before map[string]any, converted *unstructured.Object) {
	after, found := converted.Object["metadata"].(map[string]any)
	if found {
		for _, field := range []string{"labels", "annotations"} {
			delete(before, field)
			if value, has := after[field]; has && value != nil {
				before[field] = value
			}
		}
	}
	converted.Object["metadata"] = before
}
