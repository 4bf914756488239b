//go:build unix

package main

import (
	"bytes"
	"context"
	"io"
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestProxyFar_CarriesBothDirections(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	echo := accepting(t, func(conn net.Conn) {
		_, _ = io.Copy(conn, conn)
		_ = conn.Close()
	})
	far := accepting(t, func(conn net.Conn) { proxyFar(ctx, conn, echo) })
	conn, err := net.Dial("tcp", far)
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	sent := bytes.Repeat([]byte("0123456789"), 20_000)
	go func() { _, _ = conn.Write(sent) }()
	got := make([]byte, len(sent))
	_, err = io.ReadFull(conn, got)
	require.NoError(t, err)
	assert.Equal(t, sent, got)
	stop()
	_, err = conn.Read(got)
	assert.Error(t, err, "the end of ctx must end the connection")
}

// accepting serves the next connection to the address that it returns.
func accepting(t *testing.T, serve func(net.Conn)) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		if conn, err := listener.Accept(); err == nil {
			serve(conn)
		}
	}()
	return listener.Addr().String()
}
