package stream

import (
	"context"
	"fmt"
	"net"
)

// Port is a port's number, or its name.
type Port interface{ ~int | ~string }

// DialPort opens a connection to a port of a pod, or of a pod that a service or workload selects: see
// [PortDialer.DialContext], whose contract it has. The connection has a tunnel of its own; use a PortDialer for many.
func DialPort[P Port](ctx context.Context, target Target, name string, port P) (net.Conn, error) {
	d := &PortDialer{Target: target}
	conn, err := d.dial(ctx, name, fmt.Sprint(port))
	if err != nil {
		_ = d.Close()
		return nil, err
	}
	conn.OnClose(func() { _ = d.Close() })
	return conn, nil
}
