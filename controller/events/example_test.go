package events_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/anykind/anykind/controller/events"
	"github.com/anykind/anykind/internal/testing/controllertest"
	"github.com/anykind/anykind/unstructured"
)

func ExampleRecorder() {
	ctx := context.Background()
	client, closeAll, err := controllertest.ExampleServer(ctx, os.Stdout)
	if err != nil {
		log.Fatal(err)
	}
	defer closeAll()

	recorder, err := events.NewRecorder(ctx, client, "example.com/widgets", nil)
	if err != nil {
		log.Fatal(err)
	}
	web := &unstructured.Object{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": "web", "namespace": "shop", "uid": "7"},
	}}
	recorder.Record(web, events.Event{Type: "Warning", Reason: "DiskFull", Action: "Resize", Note: "no space is left on the disk of web"})
	fmt.Println(recorder.Close(ctx), recorder.Dropped())
	// Output: <nil> 0
}
