package stream_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/gorilla/websocket"

	"github.com/anykind/anykind/stream"
	"github.com/anykind/anykind/transport"
)

// greet is a server whose pods have a web server that sends hello.
func greet(w http.ResponseWriter, r *http.Request) {
	switch {
	case strings.HasSuffix(r.URL.Path, "/pods/web-0:8080/proxy/health"):
		fmt.Fprintln(w, "well, by proxy")
	case r.Header.Get("Upgrade") == "":
		w.WriteHeader(http.StatusForbidden)
	default:
		ws, err := (&websocket.Upgrader{Subprotocols: []string{tunnelProtocol}}).Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer func() { _ = ws.Close() }()
		n := &node{ws: ws}
		for f, ok := n.strict(); ok; f, ok = n.strict() {
			switch {
			case f.kind == syn:
				n.control(reply, f.stream)
			case f.kind == 0 && len(f.payload) > 0:
				n.data(f.stream, fin, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello\n")
				n.data(f.stream-2, fin, "") // no error
			}
		}
	}
}

// greeting returns a target on greet.
func greeting() (web pods, stop func()) {
	server := httptest.NewServer(http.HandlerFunc(greet))
	conn, err := transport.New(server.URL, nil, nil)
	if err != nil {
		log.Fatal(err)
	}
	return pods{conn}, func() {
		conn.Close()
		server.Close()
	}
}

func ExampleDialPort() {
	ctx := context.Background()
	pods, stop := greeting() // with a real server: pods, err := client.Resource(ctx, "pods")
	defer stop()

	conn, err := stream.DialPort(ctx, pods, "web-0", 8080)
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	fmt.Fprint(conn, "GET / HTTP/1.0\r\n\r\n")
	response, err := io.ReadAll(conn)
	fmt.Println(strings.Fields(string(response))[1], err)
	// Output: 200 <nil>
}

func ExamplePortDialer() {
	pods, stop := greeting()
	defer stop()

	dialer := &stream.PortDialer{Target: pods}
	defer func() { _ = dialer.Close() }()
	client := &http.Client{Transport: &http.Transport{DialContext: dialer.DialContext}}
	response, err := client.Get("http://web-0:8080/")
	if err != nil {
		log.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	fmt.Printf("%s%v\n", body, err)
	// Output:
	// hello
	// <nil>
}

func ExampleForwardPort() {
	pods, stop := greeting()
	defer stop()

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- stream.ForwardPort(ctx, pods, "web-0", 8080, listener) }()

	response, err := http.Get("http://" + listener.Addr().String())
	if err != nil {
		log.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	fmt.Printf("%s%v\n", body, err)
	cancel()
	fmt.Println(<-ended)
	// Output:
	// hello
	// <nil>
	// context canceled
}

func ExampleProxy() {
	pods, stop := greeting()
	defer stop()

	client := &http.Client{Transport: stream.Proxy(pods)}
	response, err := client.Get("http://web-0:8080/health")
	if err != nil {
		log.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	fmt.Printf("%d %s%v\n", response.StatusCode, body, err)
	// Output:
	// 200 well, by proxy
	// <nil>
}
