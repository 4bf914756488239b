package discovery_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/restmapper"
)

// A snapshot in the folder of a program's source pins what the program works with; a change of the server's shows as a
// diff.
func ExampleSnapshot_Save() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	apps := schema.GroupVersion{Group: "apps", Version: "v1"}
	snapshot := &discovery.Snapshot{Groups: []discovery.Group{{Name: "apps", Versions: []discovery.Version{{
		Name:      "v1",
		Resources: []*discovery.Resource{{GVR: apps.WithResource("deployments"), GVK: apps.WithKind("Deployment"), Namespaced: true}},
	}}}}} // client.Snapshot(ctx) has it from a server

	path := filepath.Join(dir, "server.json")
	if err := snapshot.Save(path); err != nil {
		log.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(string(text))
	// Output:
	// {
	//   "kind": "anykind discovery snapshot",
	//   "format": 3,
	//   "checksum": "sha256:309c1aa737ff70a510941abd9df5a4719d4e00f2114e5f3ca4460170e5d86e73",
	//   "taken": "0001-01-01T00:00:00Z",
	//   "aggregated": false,
	//   "groups": [
	//     {
	//       "name": "apps",
	//       "versions": [
	//         {
	//           "name": "v1",
	//           "resources": [
	//             {
	//               "name": "deployments",
	//               "singularName": "",
	//               "namespaced": true,
	//               "kind": "Deployment",
	//               "verbs": null
	//             }
	//           ]
	//         }
	//       ]
	//     }
	//   ]
	// }
}

func ExampleLoad() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path := filepath.Join(dir, "server.json")
	apps := schema.GroupVersion{Group: "apps", Version: "v1"}
	saved := &discovery.Snapshot{Groups: []discovery.Group{{Name: "apps", Versions: []discovery.Version{{
		Name:      "v1",
		Resources: []*discovery.Resource{{GVR: apps.WithResource("deployments"), GVK: apps.WithKind("Deployment"), Namespaced: true}},
	}}}}}
	if err := saved.Save(path); err != nil {
		log.Fatal(err)
	}

	snapshot, err := discovery.Load(path)
	if err != nil {
		log.Fatal(err)
	}
	for _, group := range snapshot.Groups {
		for _, version := range group.Versions {
			for _, resource := range version.Resources {
				fmt.Println(resource.GVK, "at", resource.GVR.Resource)
			}
		}
	}
	// Output: apps/v1, Kind=Deployment at deployments
}

// A client without a server, for a program that checks names against the resources of a saved snapshot.
func ExampleNewOffline() {
	pods := &discovery.Resource{
		GVR: schema.GroupVersionResource{Version: "v1", Resource: "pods"}, GVK: schema.GroupVersionKind{Version: "v1", Kind: "Pod"},
		ShortNames: []string{"po"}, Namespaced: true,
	}
	saved := &discovery.Snapshot{Groups: []discovery.Group{{Versions: []discovery.Version{{Name: "v1", Resources: []*discovery.Resource{pods}}}}}} // discovery.Load

	client := discovery.NewOffline(saved)
	found, err := restmapper.New(client).Resource(context.Background(), "po")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(found.GVK)
	_, err = client.ServerVersion(context.Background())
	fmt.Println(err)
	// Output:
	// /v1, Kind=Pod
	// no server: the client was made with NewOffline
}
