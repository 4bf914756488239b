package rehearsal_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/exec"

	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/apitest"
	"github.com/anykind/anykind/apitest/rehearsal"
	"github.com/anykind/anykind/unstructured"
)

// clusterCopy starts a server with a ConfigMap, in place of a copy of a cluster.
func clusterCopy() *apitest.Server {
	settings := &unstructured.Object{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": "default", "name": "settings"}, "data": map[string]any{"color": "red"},
	}}
	server, err := apitest.Start(&apitest.Options{Objects: []*unstructured.Object{settings}})
	if err != nil {
		log.Fatal(err)
	}
	return server
}

// What a controller would change. This one ends by itself; a rehearsal of others ends when nothing is written for Options.Quiet.
func ExampleRun() {
	server := clusterCopy()
	defer server.Close()

	paint := func(ctx context.Context, server *apitest.Server) error {
		configMaps, err := server.Client().Resource(ctx, "configmaps")
		if err != nil {
			return err
		}
		_, err = configMaps.Namespace("default").Patch(ctx, "settings", types.MergePatchType, []byte(`{"data": {"color": "blue"}}`), nil)
		return err
	}
	report, err := rehearsal.Run(context.Background(), server, paint, nil)
	if err != nil {
		log.Fatal(err)
	}
	for _, change := range report.Changes {
		fmt.Println(change.Action, change.Object)
		for _, field := range change.Fields {
			fmt.Println(" ", field.Path, field.Live, "to", field.Planned)
		}
	}
	fmt.Println(report.Outcome, report.Err)
	// Output:
	// configure ConfigMap "default/settings"
	//   .data.color red to blue
	// ended <nil>
}

// A controller in any language: it gets a kubeconfig of the server in $KUBECONFIG.
func ExampleCommand() {
	server := clusterCopy()
	defer server.Close()

	operator := rehearsal.Command(os.Stderr, "no-such-operator", "--workers=2")
	report, err := rehearsal.Run(context.Background(), server, operator, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(report.Outcome, len(report.Changes), errors.Is(report.Err, exec.ErrNotFound))
	// Output: ended 0 true
}
