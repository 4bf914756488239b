// Package table converts objects to the alternative response forms Table, PartialObjectMetadata and PartialObjectMetadataList.
//
// The cells of custom resources are computed by the JSON paths of their definitions. The cells of built-in kinds are computed by
// functions with the real server's output: cells_*.go.
package table

import (
	"fmt"
	"maps"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/apitest/internal/kinds"
	"github.com/anykind/anykind/apitest/internal/nested"
)

// Options configure a Table.
type Options struct {
	Version string                     // of meta.k8s.io: "v1" or "v1beta1"
	Include metav1.IncludeObjectPolicy // None, Metadata (the default) or Object
	Now     time.Time                  // for ages
	// NoColumns omits the column definitions, for a watch after its first event.
	NoColumns bool
}

// Of returns the Table of an object or a list. warning is set if the real server has cells not computed here. The table shares
// memory with obj.
func Of(resource *kinds.Resource, obj map[string]any, opts Options) (table map[string]any, warning string, err error) {
	switch opts.Include {
	case "", metav1.IncludeNone, metav1.IncludeMetadata, metav1.IncludeObject:
	default:
		return nil, "", apierrors.NewBadRequest(fmt.Sprintf("unrecognized includeObject value: %q", opts.Include))
	}
	p, warning, err := newPrinter(resource, opts.Now)
	if err != nil {
		return nil, "", err
	}
	items, isList := obj["items"].([]any)
	if !isList {
		items = []any{obj}
	}
	rows := make([]any, 0, len(items))
	for _, item := range p.sorted(items) {
		one, _ := item.(map[string]any)
		rows = append(rows, p.row(one, opts))
	}
	table = map[string]any{
		"kind": "Table", "apiVersion": "meta.k8s.io/" + opts.Version, "metadata": listMeta(obj), "columnDefinitions": nil, "rows": rows,
	}
	if len(rows) == 0 && p.isDefault {
		table["rows"] = nil // like the real server
	}
	if !opts.NoColumns {
		table["columnDefinitions"] = columnDefinitions(p.columns)
	}
	return table, warning, nil
}

// PartialMetadata returns the PartialObjectMetadata of an object or the PartialObjectMetadataList of a list. version is the
// version of meta.k8s.io. The result shares memory with obj.
func PartialMetadata(resource *kinds.Resource, obj map[string]any, version string) map[string]any {
	items, isList := obj["items"].([]any)
	if !isList {
		metadata := withoutAnnotations(obj["metadata"], convertedAnnotations(resource))
		return map[string]any{"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/" + version, "metadata": metadata}
	}
	var partial []any // null if empty, like the API server
	for _, item := range items {
		one, _ := item.(map[string]any)
		partial = append(partial, PartialMetadata(resource, one, version))
	}
	return map[string]any{
		"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/" + version, "metadata": listMeta(obj), "items": partial,
	}
}

// convertedAnnotations returns the annotations added by the real server's conversion from the internal version. Metadata alone is
// not converted.
func convertedAnnotations(resource *kinds.Resource) []string {
	switch resource.GroupResource().String() {
	case "daemonsets.apps":
		return []string{"deprecated.daemonset.template.generation"}
	case "horizontalpodautoscalers.autoscaling":
		if resource.Version == "v1" {
			return []string{metricsAnnotation, currentMetricsAnnotation, scalingConditions, scalingBehaviorAnnotation}
		}
	}
	return nil
}

func withoutAnnotations(value any, names []string) any {
	metadata, _ := value.(map[string]any)
	annotations := nested.Map(metadata, "annotations")
	if len(names) == 0 || annotations == nil {
		return value
	}
	metadata = maps.Clone(metadata)
	annotations = maps.Clone(annotations)
	for _, name := range names {
		delete(annotations, name)
	}
	metadata["annotations"] = annotations
	if len(annotations) == 0 {
		delete(metadata, "annotations")
	}
	return metadata
}

// listMeta returns the list metadata of a table. For a single object it is the resourceVersion only.
func listMeta(obj map[string]any) map[string]any {
	metadata := map[string]any{}
	found := nested.Map(obj, "metadata")
	for _, key := range []string{"resourceVersion", "continue", "remainingItemCount"} {
		if value, has := found[key]; has && value != "" {
			metadata[key] = value
		}
	}
	return metadata
}

func columnDefinitions(columns []kinds.Column) []any {
	definitions := make([]any, 0, len(columns))
	for _, c := range columns {
		definitions = append(definitions, map[string]any{
			"name": c.Name, "type": c.Type, "format": c.Format, "description": c.Description, "priority": int64(c.Priority),
		})
	}
	return definitions
}

// typed returns an object with its kind. Items of built-in lists have no kind.
func (p *printer) typed(obj map[string]any) map[string]any {
	if obj["kind"] != nil {
		return obj
	}
	obj = maps.Clone(obj)
	obj["kind"] = p.resource.Kind
	obj["apiVersion"] = p.resource.APIVersion()
	return obj
}

// row returns the row of an object.
func (p *printer) row(obj map[string]any, opts Options) map[string]any {
	row := map[string]any{"cells": p.cells(object{obj, p.now})}
	if p.conditions != nil {
		if conditions := p.conditions(object{obj, p.now}); conditions != nil {
			row["conditions"] = conditions
		}
	}
	switch opts.Include {
	case metav1.IncludeObject:
		row["object"] = p.typed(obj)
	case metav1.IncludeNone:
		row["object"] = nil
	default:
		row["object"] = PartialMetadata(p.resource, obj, opts.Version)
	}
	return row
}
