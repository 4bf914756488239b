package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/anykind/anykind/apitest/internal/nested"
	"github.com/anykind/anykind/apitest/internal/recorded"
	"github.com/anykind/anykind/transport"
)

// addTemplates records the documents of two CustomResourceDefinitions with all subresources. Their names are placeholders.
// Package kinds replaces them by the names of a definition.
func (r *openapiRecorder) addTemplates(ctx context.Context, api *server) error {
	for _, scope := range []string{"Namespaced", "Cluster"} {
		if err := r.addTemplate(ctx, api, scope); err != nil {
			return fmt.Errorf("record a CustomResourceDefinition with scope %s: %w", scope, err)
		}
	}
	return nil
}

const (
	definitionsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	templateGroup   = recorded.TemplateGroup
	templateV3      = "apis/" + templateGroup + "/" + recorded.TemplateVersion
)

func (r *openapiRecorder) addTemplate(ctx context.Context, api *server, scope string) error {
	body, err := json.Marshal(templateDefinition(scope))
	if err != nil {
		return err
	}
	if _, err := api.send(ctx, &transport.Request{Method: "POST", Path: definitionsPath, Body: body}); err != nil {
		return err
	}
	v2, err := waitForDocument(ctx, api, "/openapi/v2", true)
	if err != nil {
		return err
	}
	v3, err := waitForDocument(ctx, api, "/openapi/v3/"+templateV3, true)
	if err != nil {
		return err
	}
	name := strings.ToLower(scope)
	if err := r.addTemplateV3("crd/v3/"+name, v3); err != nil {
		return err
	}
	if err := r.addTemplateV2("crd/v2/"+name, v2); err != nil {
		return err
	}
	path := definitionsPath + "/" + recorded.TemplatePlural + "." + templateGroup
	if _, err := api.send(ctx, &transport.Request{Method: "DELETE", Path: path}); err != nil {
		return err
	}
	_, err = waitForDocument(ctx, api, "/openapi/v2", false)
	return err
}

// addTemplateV3 records the document with the definitions of the kind and its list.
func (r *openapiRecorder) addTemplateV3(path string, document map[string]any) error {
	schemas := nested.Map(document, "components", "schemas")
	for name, schema := range schemas {
		text, err := compactJSON(schema)
		if err != nil {
			return err
		}
		if r.definitions[name] != text {
			r.override(path, name, text)
		}
	}
	return r.addDocument(path, document, schemas)
}

// addTemplateV2 records the paths of the CRD and the definitions of the kind and its list.
func (r *openapiRecorder) addTemplateV2(path string, document map[string]any) error {
	recordedPaths := nested.Map(r.documents["v2"].(map[string]any), "paths")
	all := nested.Map(document, "paths")
	added := map[string]any{}
	for path, item := range all {
		if _, builtin := recordedPaths[path]; !builtin {
			added[path] = item
		}
	}
	r.documents[path] = map[string]any{"paths": added}
	definitions := nested.Map(document, "definitions")
	for name, definition := range definitions {
		if strings.Contains(name, recorded.TemplateVersion) {
			text, err := compactJSON(definition)
			if err != nil {
				return err
			}
			r.override(path, name, text)
		}
	}
	return nil
}

// waitForDocument polls the document until the template's paths are present or absent.
func waitForDocument(ctx context.Context, api *server, path string, present bool) (map[string]any, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		document, err := api.getDocument(ctx, path)
		if err == nil {
			paths := nested.Map(document, "paths")
			if _, has := paths["/apis/"+templateGroup+"/"+recorded.TemplateVersion+"/"+recorded.TemplatePlural]; has == present {
				return document, nil
			}
		}
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for %s: %w", path, context.Cause(ctx))
		}
	}
}

func templateDefinition(scope string) map[string]any {
	return map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": recorded.TemplatePlural + "." + templateGroup},
		"spec": map[string]any{
			"group": templateGroup, "scope": scope,
			"names": map[string]any{
				"plural": recorded.TemplatePlural, "kind": recorded.TemplateKind, "listKind": recorded.TemplateListKind,
			},
			"versions": []any{map[string]any{
				"name": recorded.TemplateVersion, "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}},
				"subresources": map[string]any{
					"status": map[string]any{},
					"scale":  map[string]any{"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"},
				},
			}},
		},
	}
}
