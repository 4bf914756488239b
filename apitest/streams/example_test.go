package streams_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"strings"

	"github.com/anykind/anykind/apitest"
	"github.com/anykind/anykind/apitest/streams"
	"github.com/anykind/anykind/stream"
	"github.com/anykind/anykind/unstructured"
)

// A pod whose command tr makes capital letters, and whose other commands fail.
func ExampleHandlers() {
	ctx := context.Background()
	pod := &unstructured.Object{Object: map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"namespace": "default", "name": "web"},
		"spec": map[string]any{"containers": []any{map[string]any{"name": "app", "image": "example.com/app:1"}}},
	}}
	server, err := apitest.Start(&apitest.Options{Objects: []*unstructured.Object{pod}, Streams: streams.Handlers{
		Exec: func(_ context.Context, session *streams.Session) error {
			if session.Command[0] != "tr" {
				return &streams.ExitError{Code: 127}
			}
			text, err := io.ReadAll(session.Stdin)
			if err != nil {
				return err
			}
			_, err = io.WriteString(session.Stdout, strings.ToUpper(string(text)))
			return err
		},
	}})
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	pods, err := server.Client().Resource(ctx, "pods")
	if err != nil {
		log.Fatal(err)
	}
	tr := stream.Command(ctx, pods, "web", "tr", "a-z", "A-Z")
	tr.Stdin = strings.NewReader("hello")
	out, err := tr.Output()
	fmt.Println(string(out), err)
	fmt.Println(stream.Command(ctx, pods, "web", "none").Run())
	// Output:
	// HELLO <nil>
	// the command ended with exit code 127
}
