package kubeconfig_test

import (
	"fmt"
	"log"

	"github.com/anykind/anykind/transport/kubeconfig"
)

func ExampleFile_Resolve() {
	file, err := kubeconfig.Parse([]byte(`
apiVersion: v1
kind: Config
current-context: shop
contexts:
- {name: shop, context: {cluster: home, user: jane, namespace: shop}}
clusters:
- {name: home, cluster: {server: "https://10.0.0.1:6443"}}
users:
- {name: jane, user: {tokenFile: jane.token}}
`), "/home/jane/.kube")
	if err != nil {
		log.Fatal(err)
	}
	resolved, err := file.Resolve("") // the current context
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(resolved.Cluster.Server, resolved.Namespace, resolved.User.TokenFile)

	_, err = file.Resolve("work")
	fmt.Println(err)
	// Output:
	// https://10.0.0.1:6443 shop /home/jane/.kube/jane.token
	// context "work" does not exist (contexts: shop)
}
