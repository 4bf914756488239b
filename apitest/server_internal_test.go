package apitest

import (
	"bytes"
	"log"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestPanicWriter_Write(t *testing.T) {
	var written bytes.Buffer
	logger := log.New(panicWriter{&written}, "", 0)
	logger.Print("http: TLS handshake error from 127.0.0.1:1: EOF")
	assert.Empty(t, written.String())
	logger.Print("http2: panic serving pipe: nil")
	assert.Equal(t, "http2: panic serving pipe: nil\n", written.String())
}
