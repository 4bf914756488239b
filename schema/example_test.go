package schema_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"os"

	apischema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/schema"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
)

var widgetKind = apischema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}

// widgetDefinition returns the definition of the kind Widget.
func widgetDefinition() *unstructured.Object {
	definition, err := unstructured.Decode([]byte(`{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": {"name": "widgets.example.com"}, "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
			"versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {
				"type": "object", "required": ["size"], "properties": {
					"size": {"type": "integer", "minimum": 1, "description": "The number of cogs."},
					"color": {"type": "string", "enum": ["red", "blue"], "default": "red"}}}}}}}]}}`))
	if err != nil {
		log.Fatal(err)
	}
	return definition
}

// widgets knows the kind Widget by its definition. With a server: schema.New(client.Conn(), nil).
func widgets() (*schema.Client, *schema.Schema) {
	offline, err := schema.NewOffline("")
	if err != nil {
		log.Fatal(err)
	}
	client, err := offline.WithDefinitions(widgetDefinition())
	if err != nil {
		log.Fatal(err)
	}
	widget, err := client.Kind(context.Background(), widgetKind)
	if err != nil {
		log.Fatal(err)
	}
	return client, widget
}

// The schemas that a server publishes, and a manifest with a mistyped field.
func ExampleNew() {
	ctx := context.Background()
	server := httptest.NewServer(http.HandlerFunc(serveOpenAPI)) // in place of a cluster
	defer server.Close()
	conn, err := transport.Open(&transport.Config{Server: server.URL})
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()

	gear, err := schema.New(conn, nil).Kind(ctx, apischema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Gear"})
	if err != nil {
		log.Fatal(err)
	}
	obj, err := unstructured.Decode([]byte(`{"apiVersion": "example.com/v1", "kind": "Gear", "metadata": {"name": "web"}, "spec": {"tooth": 3}}`))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(gear.Validate(ctx, obj, nil).Err())
	// Output: spec.tooth: the schema has no such field (did you mean teeth?)
}

// serveOpenAPI serves the schema of the kind Gear.
func serveOpenAPI(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/openapi/v3" {
		fmt.Fprint(w, `{"paths": {"apis/example.com/v1": {"serverRelativeURL": "/openapi/v3/apis/example.com/v1?hash=1"}}}`)
		return
	}
	fmt.Fprint(w, `{"openapi": "3.0.0", "components": {"schemas": {"com.example.v1.Gear": {
		"type": "object", "x-kubernetes-group-version-kind": [{"group": "example.com", "version": "v1", "kind": "Gear"}],
		"properties": {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"},
			"spec": {"type": "object", "properties": {"teeth": {"type": "integer"}}}}}}}}`)
}

// A program checks definitions before they are on a server.
func ExampleNewOffline() {
	offline, err := schema.NewOffline("") // or a folder of Client.Save, with the kinds of a server
	if err != nil {
		log.Fatal(err)
	}
	_, err = offline.Kind(context.Background(), widgetKind)
	fmt.Println(err)

	client, err := offline.WithDefinitions(widgetDefinition())
	if err != nil {
		log.Fatal(err)
	}
	kinds, err := client.Kinds(context.Background())
	fmt.Println(kinds, err)
	// Output:
	// schema of Widget of example.com/v1: no matches for kind "Widget" in version "example.com/v1"
	// [example.com/v1, Kind=Widget] <nil>
}

func ExampleExplanation_WriteMarkdown() {
	client, _ := widgets()
	explanation, err := client.Explain(context.Background(), widgetKind, []string{"spec"}, nil)
	if err != nil {
		log.Fatal(err)
	}
	if err := explanation.WriteMarkdown(os.Stdout); err != nil {
		log.Fatal(err)
	}
	// Output:
	// # Widget.spec
	//
	// `Object` of `example.com/v1`
	//
	// | field | type | constraints | description |
	// |---|---|---|---|
	// | `color` | `string` | one of `red`, `blue`<br>default: `"red"` |  |
	// | `size` | `integer` | required<br>minimum: `1` | The number of cogs. |
}

func ExampleClient_Explain() {
	client, _ := widgets()
	explanation, err := client.Explain(context.Background(), widgetKind, nil, &schema.ExplainOptions{Recursive: true})
	if err != nil {
		log.Fatal(err)
	}
	if err := explanation.WriteText(os.Stdout, nil); err != nil {
		log.Fatal(err)
	}
	// Output:
	// GROUP:      example.com
	// KIND:       Widget
	// VERSION:    v1
	//
	// DESCRIPTION:
	//     <empty>
	// FIELDS:
	//   apiVersion	<string>
	//   kind	<string>
	//   metadata	<ObjectMeta>
	//     annotations	<map[string]string>
	//     creationTimestamp	<string>
	//     deletionGracePeriodSeconds	<integer>
	//     deletionTimestamp	<string>
	//     finalizers	<[]string>
	//     generateName	<string>
	//     generation	<integer>
	//     labels	<map[string]string>
	//     managedFields	<[]ManagedFieldsEntry>
	//       apiVersion	<string>
	//       fieldsType	<string>
	//       fieldsV1	<FieldsV1>
	//       manager	<string>
	//       operation	<string>
	//       subresource	<string>
	//       time	<string>
	//     name	<string>
	//     namespace	<string>
	//     ownerReferences	<[]OwnerReference>
	//       apiVersion	<string> -required-
	//       blockOwnerDeletion	<boolean>
	//       controller	<boolean>
	//       kind	<string> -required-
	//       name	<string> -required-
	//       uid	<string> -required-
	//     resourceVersion	<string>
	//     selfLink	<string>
	//     uid	<string>
	//   spec	<Object>
	//     color	<string>
	//     enum: red, blue
	//     size	<integer> -required-
}

func ExampleSchema_Validate() {
	_, widget := widgets()
	obj, err := unstructured.Decode([]byte(`{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"size": 0, "colour": "red"}}`))
	if err != nil {
		log.Fatal(err)
	}
	for _, problem := range widget.Validate(context.Background(), obj, nil).Problems {
		fmt.Println(problem)
	}
	// Output:
	// spec.colour: the schema has no such field (did you mean color?)
	// spec.size: is 0, the schema says at least 1
}

func ExampleSchema_ParseValue() {
	_, widget := widgets()
	size, err := widget.At("spec", "size")
	if err != nil {
		log.Fatal(err)
	}
	value, err := size.ParseValue("3")
	fmt.Printf("%v %T %v\n", value, value, err)
	_, err = size.ParseValue("large")
	fmt.Println(err)
	// Output:
	// 3 int64 <nil>
	// "large": the value is an integer
}

func ExampleSchema_Skeleton() {
	_, widget := widgets()
	fmt.Print(widget.Skeleton(widgetKind, "web"))
	// Output:
	// apiVersion: example.com/v1
	// kind: Widget
	// metadata:
	//   name: web
	// spec:
	//   # The number of cogs.
	//   size: 1
	//   # one of "red", "blue"
	//   # color: "red"
}
