package controllertest

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/transport"
)

const exampleIndex = `{"kind":"APIGroupDiscoveryList","items":[
	{"metadata":{"name":"example.com"},"versions":[{"version":"v1","resources":[
		{"resource":"widgets","responseKind":{"group":"example.com","version":"v1","kind":"Widget"},"scope":"Namespaced","singularResource":"widget",
		 "verbs":["create","delete","get","list","patch","update","watch"],
		 "subresources":[{"subresource":"status","responseKind":{"group":"example.com","version":"v1","kind":"Widget"},"verbs":["get","patch","update"]}]}]}]},
	{"metadata":{"name":"coordination.k8s.io"},"versions":[{"version":"v1","resources":[
		{"resource":"leases","responseKind":{"group":"coordination.k8s.io","version":"v1","kind":"Lease"},"scope":"Namespaced","singularResource":"lease","verbs":["create","get","update"]}]}]},
	{"metadata":{"name":"admissionregistration.k8s.io"},"versions":[{"version":"v1","resources":[
		{"resource":"validatingwebhookconfigurations","responseKind":{"group":"admissionregistration.k8s.io","version":"v1","kind":"ValidatingWebhookConfiguration"},"scope":"Cluster","singularResource":"validatingwebhookconfiguration","verbs":["get","patch"]}]}]},
	{"metadata":{"name":"events.k8s.io"},"versions":[{"version":"v1","resources":[
		{"resource":"events","responseKind":{"group":"events.k8s.io","version":"v1","kind":"Event"},"scope":"Namespaced","singularResource":"event","verbs":["create","patch"]}]}]}]}`

// ExampleServer returns a client of an in-process server. The server prints patches to out and responds with a widget. It
// echoes other writes. Programs outside of examples call transport.Load and dynamic.Connect instead.
func ExampleServer(ctx context.Context, out io.Writer) (client *dynamic.Client, closeAll func(), err error) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		index := map[string]string{"/api": `{"kind":"APIGroupDiscoveryList","items":[]}`, "/apis": exampleIndex}[r.URL.Path]
		switch {
		case index != "":
			w.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
			fmt.Fprint(w, index)
		case r.Method == http.MethodPatch:
			fmt.Fprintln(out, r.Method, r.URL.Path, string(body))
			fmt.Fprint(w, `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"web","namespace":"shop","uid":"7","generation":2,"finalizers":["example.com/disk"]}}`)
		case r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/leases/"):
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":404,"reason":"NotFound","details":{"name":"widgets"}}`)
		default:
			_, _ = w.Write(body)
		}
	}))
	client, err = dynamic.Connect(ctx, &transport.Config{Server: server.URL})
	if err != nil {
		server.Close()
		return nil, nil, err
	}
	return client, func() { client.Close(); server.Close() }, nil
}
