package restconfig_test

import (
	"context"
	"fmt"
	"log"
	"net/http/httptest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/anykind/anykind/compat/restconfig"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/scripted"
)

// shop is a server with a ConfigMap.
func shop() *httptest.Server {
	server := scripted.New("/v1 configmaps configmap ConfigMap")
	server.Handle("GET /api/v1/namespaces/shop/configmaps/settings", scripted.JSON(
		`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "shop", "name": "settings"}, "data": {"color": "red"}}`))
	return httptest.NewServer(server)
}

// A clientset of client-go over the connection of an anykind client.
func ExampleFromConn() {
	server := shop()
	defer server.Close()
	conn, err := restconfig.ToConn(&rest.Config{Host: server.URL}) // or transport.Open
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	clientset, err := kubernetes.NewForConfig(restconfig.FromConn(conn))
	if err != nil {
		log.Fatal(err)
	}
	settings, err := clientset.CoreV1().ConfigMaps("shop").Get(context.Background(), "settings", metav1.GetOptions{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(settings.Data)
	// Output: map[color:red]
}

// An anykind client with the server and the login of a rest.Config.
func ExampleToConn() {
	server := shop()
	defer server.Close()
	conn, err := restconfig.ToConn(&rest.Config{Host: server.URL})
	if err != nil {
		log.Fatal(err)
	}
	client := dynamic.New(conn, nil)
	defer client.Close()
	configMaps, err := client.Resource(context.Background(), "configmaps")
	if err != nil {
		log.Fatal(err)
	}
	settings, err := configMaps.Namespace("shop").Get(context.Background(), "settings", nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(settings.Object["data"])
	// Output: map[color:red]
}

// A program with settings of its own in a rest.Config: the login of the connection, and the user agent of the config.
func ExampleWithConn() {
	config := &rest.Config{Host: "https://127.0.0.1:6443", BearerToken: "secret", UserAgent: "shop/1.0"}
	conn, err := restconfig.ToConn(config)
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()

	config = restconfig.WithConn(config, conn)
	fmt.Println(config.Host, config.UserAgent, config.BearerToken == "") // the connection adds the token to requests
	// Output: https://127.0.0.1:6443 shop/1.0 true
}
