//go:build unix

package main

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// A distant server: each direction takes half of the 50 ms of a round trip, and carries 1 Gbit/s.
const (
	farDelay = 25 * time.Millisecond
	farRate  = 125_000_000 // bytes a second
	// maxFarPieces limits the data under way in a direction. It must exceed rate * delay.
	maxFarPieces = 1024
	farPiece     = 16 << 10 // bytes
)

// compressionComparisons compares lists with gzip, the default, and without gzip, on loopback and with a distant server.
func compressionComparisons(count int) []comparison {
	var all []comparison
	for _, place := range []struct {
		name, what      string
		cpuAim, wallAim float64
	}{
		{"near", "on loopback", 1.1, 1.1},
		{"far", "through a proxy with 1 Gbit/s and a round trip of 50 ms", 1.1, 1},
	} {
		for _, form := range []struct{ name, what string }{{"list", "List"}, {"whole", "ListPage"}} {
			add := func(figure, what string, aim float64) {
				of := func(compression string) cost {
					return cost{run{"ours", place.name + "-" + form.name + "-" + compression, count}, figure}
				}
				all = append(all, comparison{
					fmt.Sprintf("compression-%s-%s-%s/%d", place.name, form.name, figure, count),
					fmt.Sprintf("%s of %s with compression, against without, %s", what, form.what, place.what), aim, of("gzip"), of("plain"),
				})
			}
			add("cpu", "CPU", place.cpuAim)
			add("wall", "time", place.wallAim)
		}
	}
	return all
}

// serveFar starts a proxy to the server with the delay and rate of a distant server, until ctx ends, and returns its kubeconfig.
func (s *server) serveFar(ctx context.Context) (kubeconfig string, err error) {
	server, err := url.Parse(s.conn.Server())
	if err != nil {
		return "", err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	context.AfterFunc(ctx, func() { _ = listener.Close() })
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go proxyFar(ctx, client, server.Host)
		}
	}()
	data, err := os.ReadFile(s.kubeconfig)
	if err != nil {
		return "", err
	}
	kubeconfig = filepath.Join(s.dir, "far.kubeconfig")
	return kubeconfig, os.WriteFile(kubeconfig, []byte(strings.ReplaceAll(string(data), server.Host, listener.Addr().String())), 0o600)
}

// proxyFar connects a client to the server until either side or ctx ends.
func proxyFar(ctx context.Context, client net.Conn, address string) {
	server, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		_ = client.Close()
		return
	}
	closeBoth := func() {
		_ = client.Close()
		_ = server.Close()
	}
	stop := context.AfterFunc(ctx, closeBoth)
	defer stop()
	go func() {
		defer closeBoth()
		forwardFar(client, server)
	}()
	defer closeBoth()
	forwardFar(server, client)
}

// forwardFar copies a direction, in pieces delayed like in the distant network.
func forwardFar(from, to net.Conn) {
	type piece struct {
		data []byte
		due  time.Time
	}
	pieces := make(chan piece, maxFarPieces)
	go func() {
		defer close(pieces)
		var sent time.Time // when the network has sent everything so far
		for {
			data := make([]byte, farPiece)
			n, err := from.Read(data)
			if n > 0 {
				if now := time.Now(); sent.Before(now) {
					sent = now
				}
				sent = sent.Add(time.Duration(n) * time.Second / farRate)
				pieces <- piece{data[:n], sent.Add(farDelay)}
			}
			if err != nil {
				return
			}
		}
	}()
	for p := range pieces {
		time.Sleep(time.Until(p.due))
		if _, err := to.Write(p.data); err != nil {
			_ = from.Close() // ends the reading; the remaining pieces are dropped
		}
	}
}
