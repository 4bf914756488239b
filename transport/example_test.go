package transport_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/anykind/anykind/transport"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// ExampleConn_Do makes a raw request, the building block of everything else.
func ExampleConn_Do() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/healthz" {
			http.Error(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","message":"no such path","code":404}`, http.StatusNotFound)
			return
		}
		fmt.Fprint(w, "ok")
	}))
	defer server.Close()

	conn, err := transport.Open(&transport.Config{Server: server.URL})
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()

	response, err := conn.Do(context.Background(), &transport.Request{Path: "/healthz"})
	if err != nil {
		log.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	fmt.Println(string(body), err)

	_, err = conn.Do(context.Background(), &transport.Request{Path: "/nothing"})
	fmt.Println(apierrors.IsNotFound(err), err)
	// Output:
	// ok <nil>
	// true no such path
}

// ExampleConfig shows that a configuration may be printed: its secrets are not.
func ExampleConfig() {
	fmt.Println(transport.Config{Server: "https://10.0.0.1:6443", Token: transport.NewSecret("secret")})
	// Output: [server=https://10.0.0.1:6443 namespace= credential=token]
}
