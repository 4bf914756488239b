package main

import (
	"fmt"
	"strings"

	"github.com/anykind/anykind/unstructured"
)

const syntheticGroup = "synthetic.example.com"

// synthetic returns definitions for cases permitted by the API server but absent in all listed projects.
func synthetic() []*unstructured.Object {
	longGroup := strings.Repeat("a-label-of-sixty-three-characters-which-is-the-longest-there-is1.", 3) + "example.com"
	all := []*unstructured.Object{
		// Names: a plural equal to the singular, an irregular plural, the longest name, and the names of a built-in kind.
		definition(syntheticGroup, "sheep", "Sheep", fields{"singular": "sheep"}, nil),
		definition(syntheticGroup, "xylofoner", "Xylofon", fields{"singular": "xylofon"}, nil),
		definition(syntheticGroup, strings.Repeat("x", 63), "Long"+strings.Repeat("X", 55), nil, nil),
		definition(longGroup, "fars", "Far", nil, nil),
		definition(syntheticGroup, "pods", "Pod", fields{"shortNames": list("po", "deploy")}, nil),
		definition(syntheticGroup, "deployments", "Deployment", fields{"categories": list("all")}, nil),
		definition("other."+syntheticGroup, "sheep", "Sheep", fields{"shortNames": list("shp"), "categories": list("all", "animals")}, nil),
		// A list kind other than KINDList.
		definition(syntheticGroup, "fleets", "Fleet", fields{"listKind": "ShipsOfAFleet"}, nil),
		// Twenty unordered versions, some of them not served, some with irregular names.
		definition(syntheticGroup, "ancients", "Ancient", nil, fields{"versions": manyVersions()}),
		// Every built-in subresource, with the longest paths.
		definition(syntheticGroup, "scales", "Scaled", nil, fields{"versions": list(version("v1", fields{
			"subresources": fields{"status": fields{}, "scale": fields{
				"specReplicasPath": ".spec.size.replicas.desired", "statusReplicasPath": ".status.size.replicas.actual",
				"labelSelectorPath": ".status.size.selector",
			}},
			"selectableFields":         list(fields{"jsonPath": ".spec.color"}, fields{"jsonPath": ".spec.size.kind"}),
			"additionalPrinterColumns": list(column("Color", "string", ".spec.color"), column("Age", "date", ".metadata.creationTimestamp"), column("Images", "string", ".spec.items[*].image")),
			"schema": schemaOf(fields{
				"spec": objectOf(fields{
					"color": fields{"type": "string"},
					"size": objectOf(fields{"kind": fields{"type": "string"}, "replicas": objectOf(fields{
						"desired": fields{"type": "integer", "format": "int32"},
					})}),
					"items": fields{"type": "array", "items": objectOf(fields{"image": fields{"type": "string"}})},
				}),
				"status": objectOf(fields{"size": objectOf(fields{
					"selector": fields{"type": "string"}, "replicas": objectOf(fields{"actual": fields{"type": "integer", "format": "int32"}}),
				})}),
			}),
		}))}),
		// Every extension of structural schemas, defaults, rules, and numbers at their limits.
		definition(syntheticGroup, "schemas", "Schema", nil, fields{"versions": list(version("v1", fields{"schema": schemaOf(everyExtension())}))}),
		// A deeply nested schema.
		definition(syntheticGroup, "depths", "Depth", nil, fields{"versions": list(version("v1", fields{"schema": schemaOf(nested(60))}))}),
		// A deprecated version with a warning, and a version without deprecation.
		definition(syntheticGroup, "olds", "Old", nil, fields{"versions": list(
			version("v2", nil),
			version("v1beta1", fields{"storage": false, "deprecated": true, "deprecationWarning": "v1beta1 is deprecated: use v2"}),
		)}),
		// A cluster-scoped kind without pruning of fields.
		definition(syntheticGroup, "wilds", "Wild", nil, fields{"scope": "Cluster", "preserveUnknownFields": false}),
	}
	// Many groups with a common plural, short name and category; within a group the server permits no common names.
	for n := range 20 {
		all = append(all, definition(fmt.Sprintf("crowd%d.%s", n/2, syntheticGroup), []string{"crowds", "crowdeds"}[n%2], []string{"Crowd", "Crowded"}[n%2],
			fields{"shortNames": list([]string{"crowd", "cr"}[n%2], fmt.Sprintf("c%d", n)), "categories": list("crowded")}, nil))
	}
	return all
}

type fields = map[string]any

func list(values ...any) []any { return values }

// definition returns a CustomResourceDefinition; names and spec override its defaults.
func definition(group, plural, kind string, names, spec fields) *unstructured.Object {
	allNames := fields{"plural": plural, "singular": strings.ToLower(kind), "kind": kind, "listKind": kind + "List"}
	merge(allNames, names)
	allSpec := fields{"group": group, "scope": "Namespaced", "names": allNames, "versions": list(version("v1", nil))}
	merge(allSpec, spec)
	return &unstructured.Object{Object: fields{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": fields{"name": plural + "." + group}, "spec": allSpec,
	}}
}

func merge(into, from fields) {
	for name, value := range from {
		into[name] = value
	}
}

// version returns a version of a definition, served and stored unless overridden by more.
func version(name string, more fields) fields {
	v := fields{"name": name, "served": true, "storage": true, "schema": fields{"openAPIV3Schema": fields{
		"type": "object", "x-kubernetes-preserve-unknown-fields": true,
	}}}
	merge(v, more)
	return v
}

func manyVersions() []any {
	var all []any
	for n := range 20 {
		name := []string{"v%d", "v1beta%d", "v2alpha%d", "x%d"}[n%4]
		all = append(all, version(fmt.Sprintf(name, n+1), fields{"served": n%5 != 0, "storage": n == 6}))
	}
	return all
}

func schemaOf(properties fields) fields { return fields{"openAPIV3Schema": objectOf(properties)} }

func objectOf(properties fields) fields { return fields{"type": "object", "properties": properties} }

func column(name, of, path string) fields {
	return fields{"name": name, "type": of, "jsonPath": path}
}

func nested(levels int) fields {
	one := fields{"leaf": fields{"type": "string"}}
	for range levels {
		one = fields{"next": objectOf(one)}
	}
	return one
}

func everyExtension() fields {
	return fields{"spec": objectOf(fields{
		"port":     fields{"x-kubernetes-int-or-string": true},
		"template": fields{"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true},
		"byName": fields{"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list("name", "protocol"), "items": fields{
			"type": "object", "required": list("name", "protocol"),
			"properties": fields{"name": fields{"type": "string"}, "protocol": fields{"type": "string", "default": "TCP"}},
		}},
		"tags":     fields{"type": "array", "x-kubernetes-list-type": "set", "items": fields{"type": "string"}},
		"whole":    fields{"type": "array", "x-kubernetes-list-type": "atomic", "items": fields{"type": "number"}},
		"selector": fields{"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": fields{"type": "string"}},
		"long":     fields{"type": "integer", "format": "int64", "minimum": int64(-1 << 53), "maximum": int64(1 << 53)},
		"ratio":    fields{"type": "number", "default": 0.5},
		"bytes":    fields{"type": "string", "format": "byte"},
		"when":     fields{"type": "string", "format": "date-time", "nullable": true},
		"mode":     fields{"type": "string", "enum": list("a", "b", ""), "default": "a"},
		"size": fields{"type": "integer", "x-kubernetes-validations": list(
			fields{"rule": "self >= oldSelf", "message": "size may only grow"},
		)},
	})}
}
