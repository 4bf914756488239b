package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/anykind/anykind/stream"
)

// portForward forwards connections to a local port to a pod, or to a pod of a service or workload.
func portForward(ctx context.Context, p *pod, args []string) error {
	if len(args) != 2 {
		return errors.New("usage: pod port-forward POD|RESOURCE/NAME [LOCAL:]PORT")
	}
	target := p.pods
	name := args[0]
	if resource, of, pair := strings.Cut(args[0], "/"); pair {
		found, err := p.client.Resource(ctx, resource)
		if err != nil {
			return err
		}
		if p.namespace != "" {
			found = found.Namespace(p.namespace)
		}
		target = found
		name = of
	}
	local, port, given := strings.Cut(args[1], ":")
	if !given {
		port = local
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", local))
	if err != nil {
		return err
	}
	fmt.Fprintf(p.out, "forwarding %s to %s of %s\n", listener.Addr(), port, args[0])
	return stream.ForwardPort(ctx, target, name, port, listener)
}
