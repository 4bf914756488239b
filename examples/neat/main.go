// Command neat copies manifests without the fields set by servers and controllers: kubectl get svc web -o yaml | neat
package main

import (
	"log"
	"os"

	"github.com/anykind/anykind/inventory"
	"github.com/anykind/anykind/unstructured"
)

func main() {
	for obj, err := range unstructured.NewYAMLDecoder(os.Stdin).All() {
		if err != nil {
			log.Fatal(err)
		}
		text, err := unstructured.EncodeYAML(inventory.Portable(obj))
		if err != nil {
			log.Fatal(err)
		}
		if _, err := os.Stdout.Write(append([]byte("---\n"), text...)); err != nil {
			log.Fatal(err)
		}
	}
}
