// Command inventory serves the objects of all kinds of a cluster, or of several, as HTML pages and as JSON:
//
//	inventory
//	inventory -contexts east,west
//	inventory -listen :8443 -tls-cert tls.crt -tls-key tls.key
//
// Without TLS it listens on loopback only, and every user of the machine sees all objects that the program's credential may list. With TLS
// it requires a token of the cluster, and a page has only the objects that the token's user may list.
package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/anykind/anykind/controller/manager"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/inventory"
	"github.com/anykind/anykind/inventory/web"
	"github.com/anykind/anykind/transport"
)

// timeout bounds the time to read a request. A response may take twice as long.
const timeout = 30 * time.Second

func main() {
	address := flag.String("listen", "127.0.0.1:8080", "`address` to listen on; TLS is required outside of loopback")
	certFile := flag.String("tls-cert", "", "`file` with the TLS certificate")
	keyFile := flag.String("tls-key", "", "`file` with the key of the certificate")
	contexts := flag.String("contexts", "", "comma-separated `contexts` of the kubeconfig, each served below its name; the current one by default")
	flag.Parse()
	if flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	listener, tlsConfig, err := listen(*address, *certFile, *keyFile)
	if err == nil {
		err = serve(ctx, strings.Split(*contexts, ","), listener, tlsConfig)
	}
	stop()
	if err != nil && !errors.Is(err, context.Canceled) {
		log.Fatal(err)
	}
}

// listen listens on a loopback address, or with TLS on any address.
func listen(address, certFile, keyFile string) (net.Listener, *tls.Config, error) {
	var tlsConfig *tls.Config
	if certFile != "" || keyFile != "" {
		certificate, err := tls.LoadX509KeyPair(certFile, keyFile)
		if err != nil {
			return nil, nil, err
		}
		tlsConfig = &tls.Config{Certificates: []tls.Certificate{certificate}}
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, nil, err
	}
	if tcp, isTCP := listener.Addr().(*net.TCPAddr); tlsConfig == nil && (!isTCP || !tcp.IP.IsLoopback()) {
		listener.Close()
		return nil, nil, fmt.Errorf("listen on %s: not a loopback address (it requires -tls-cert and -tls-key)", address)
	}
	return listener, tlsConfig, nil
}

// serve serves the pages of clusters until ctx ends. The context "" is the kubeconfig's current context, at "/".
func serve(ctx context.Context, contexts []string, listener net.Listener, tlsConfig *tls.Config) error {
	m := manager.New(nil)
	mux := http.NewServeMux()
	for _, name := range slices.Compact(slices.Sorted(slices.Values(contexts))) {
		cfg, err := transport.Load(ctx, &transport.LoadOptions{Context: name})
		if err != nil {
			return err
		}
		conn, err := transport.Open(cfg)
		if err != nil {
			return err
		}
		client := dynamic.New(conn, nil) // without a request: the program starts with a cluster down
		defer client.Close()
		objects := inventory.NewCache(client, nil)
		m.AddCache(cmp.Or(name, "objects"), objects)
		below := strings.TrimSuffix("/"+name, "/")
		path := (&url.URL{Path: below + "/"}).EscapedPath()
		log.Printf("serving on %s%s", listener.Addr(), path)
		mux.Handle(path, http.StripPrefix(below, web.Handler(objects, &web.Options{Tokens: tlsConfig != nil})))
	}
	server := &http.Server{
		Handler: mux, TLSConfig: tlsConfig, MaxHeaderBytes: 64 << 10,
		ReadTimeout: timeout, WriteTimeout: 2 * timeout, IdleTimeout: 2 * timeout,
	}
	m.AddServer("pages", manager.HTTPServer(server, listener))
	return m.Run(ctx)
}
