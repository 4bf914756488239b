package rbac_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/transport/rbac"
	"github.com/anykind/anykind/unstructured"
)

// ExampleRecorder prints the Role for what a program did.
func ExampleRecorder() {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	recorder := rbac.NewRecorder(nil)
	conn, err := transport.Open(&transport.Config{Server: server.URL, Options: transport.Options{OnAttempt: recorder.OnAttempt}})
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()

	// A program has a dynamic.Client on this connection; its discovery needs no role.
	for _, request := range []transport.Request{
		{Path: "/apis"},
		{Path: "/apis/apps/v1/namespaces/shop/deployments"},
		{Path: "/apis/apps/v1/namespaces/shop/deployments/web/scale"},
		{Path: "/apis/apps/v1/namespaces/shop/deployments/web/scale", Method: http.MethodPatch, Body: []byte("{}")},
	} {
		response, err := conn.Do(context.Background(), &request)
		if err != nil {
			log.Fatal(err)
		}
		_ = response.Body.Close()
	}

	manifest, err := unstructured.EncodeYAML(recorder.Roles("scaler")...)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(string(manifest))
	// Output:
	// apiVersion: rbac.authorization.k8s.io/v1
	// kind: Role
	// metadata:
	//   name: scaler
	//   namespace: shop
	// rules:
	// - apiGroups:
	//   - apps
	//   resources:
	//   - deployments
	//   verbs:
	//   - list
	// - apiGroups:
	//   - apps
	//   resourceNames:
	//   - web
	//   resources:
	//   - deployments/scale
	//   verbs:
	//   - get
	//   - patch
}
