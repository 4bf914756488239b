// Package protobuf decodes objects of built-in kinds from Kubernetes' Protobuf form, to the same values as from JSON. It needs no
// Go types of the kinds: a recorded table (messages.txt.gz) has the field numbers of their messages, and the names and omissions
// of their JSON form. `make protobuf-record` writes the table from the Go types of a Kubernetes version.
//
// # Equality with JSON
//
// The result for an encoded object equals the decoded JSON of the Go object that the API server's generated code decodes from the
// same bytes. The Protobuf form has zero values of all fields without a pointer, so the table notes for each field when its JSON
// form has the field: never if zero, always, or as null. It cannot tell nil from empty lists and maps, and neither can the server,
// which stores built-in objects as Protobuf.
//
// Nothing is lost: a field outside the table is an [*UnknownFieldError]. The caller repeats the request as JSON.
//
// # Use
//
// [Envelope] splits the body of a single object. A [ListReader] reads the items of a list one by one. [ReadFrame] and [Event] read
// a watch. [Lookup] returns the [Message] of a kind, and a [Decoder] decodes encoded messages: [Decoder.Object] to maps. [Message.Check]
// validates without decoding, and [Message.AppendJSON] transcodes a valid message. Items of lists have no kind and apiVersion of
// their own: the caller passes the kind and apiVersion of every object.
package protobuf

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MediaType is the media type of bodies with an envelope.
const MediaType = "application/vnd.kubernetes.protobuf"

var magic = []byte("k8s\x00")

var (
	errInput     = fmt.Errorf("invalid Protobuf: the input ends early: %w", io.ErrUnexpectedEOF)
	errTruncated = errors.New("invalid Protobuf: the message ends early")
	errVarint    = errors.New("invalid Protobuf: a varint is too long")
	errDepth     = errors.New("invalid Protobuf: nested too deep")
)

// UnknownFieldError reports a field that the table does not describe, or describes in a different form. The API server is of a
// newer version than the table. The same object as JSON has all fields.
type UnknownFieldError struct {
	Message string // the field's message, such as core/v1.PodSpec
	Number  uint64 // the field's number in the message
	Cause   string
}

func (e *UnknownFieldError) Error() string {
	return fmt.Sprintf("Protobuf message %s: field %d %s", e.Message, e.Number, e.Cause)
}

// HasEnvelope reports whether body begins like an object with an envelope. Objects of watch events have none if they are metadata
// of custom resources.
func HasEnvelope(body []byte) bool { return bytes.HasPrefix(body, magic) }

// Envelope splits the body of a single object into its type and the encoded message.
func Envelope(body []byte) (t metav1.TypeMeta, raw []byte, err error) {
	rest, found := bytes.CutPrefix(body, magic)
	if !found {
		return t, nil, fmt.Errorf("invalid Protobuf: the body begins with %.4q, not %q", body, magic)
	}
	for len(rest) > 0 {
		var f wireField
		if f, rest, err = nextField(rest); err != nil {
			return t, nil, err
		}
		switch {
		case f.number == 1 && f.wire == wireBytes:
			if t, err = decodeTypeMeta(f.bytes); err != nil {
				return t, nil, err
			}
		case f.number == 2 && f.wire == wireBytes:
			raw = f.bytes
		case f.number == 3 && len(f.bytes) > 0:
			return t, nil, fmt.Errorf("invalid Protobuf: content encoding %.20q", f.bytes)
		}
	}
	return t, raw, nil
}

// decodeTypeMeta decodes runtime.TypeMeta.
func decodeTypeMeta(data []byte) (t metav1.TypeMeta, err error) {
	for len(data) > 0 {
		var f wireField
		if f, data, err = nextField(data); err != nil {
			return t, err
		}
		switch f.number {
		case 1:
			t.APIVersion = string(f.bytes)
		case 2:
			t.Kind = string(f.bytes)
		}
	}
	return t, nil
}
