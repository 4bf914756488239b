package schema_test

import (
	"context"
	"fmt"
	"log"
	"os"

	apischema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/schema"
	"github.com/anykind/anykind/unstructured"
)

var widgetKind = apischema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}

// widgets knows the kind Widget by its definition. With a server: schema.New(client.Conn(), nil).
func widgets() (*schema.Client, *schema.Schema) {
	definition, err := unstructured.Decode([]byte(`{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": {"name": "widgets.example.com"}, "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
			"versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {
				"type": "object", "required": ["size"], "properties": {
					"size": {"type": "integer", "minimum": 1, "description": "The number of cogs."},
					"color": {"type": "string", "enum": ["red", "blue"], "default": "red"}}}}}}}]}}`))
	if err != nil {
		log.Fatal(err)
	}
	offline, err := schema.NewOffline("")
	if err != nil {
		log.Fatal(err)
	}
	client, err := offline.WithDefinitions(definition)
	if err != nil {
		log.Fatal(err)
	}
	widget, err := client.Kind(context.Background(), widgetKind)
	if err != nil {
		log.Fatal(err)
	}
	return client, widget
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
