package controllerruntime

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/unstructured"
)

// message has the generated code of a Protobuf message.
type message interface{ Unmarshal(data []byte) error }

// generatedMessage returns obj, or nil for an object of a type that Kubernetes does not generate: a struct around a generated type has
// its Unmarshal, too.
func generatedMessage(obj any) message {
	m, ok := obj.(message)
	if !ok || !strings.HasPrefix(reflect.TypeOf(obj).Elem().PkgPath(), "k8s.io/") {
		return nil
	}
	return m
}

// magic begins a body as protobuf.
const magic = "k8s\x00"

func isProtobuf(body []byte) bool { return bytes.HasPrefix(body, []byte(magic)) }

var errInvalidProtobuf = errors.New("invalid Protobuf")

// splitEnvelope splits the body of an object or a list into its type and its message.
func splitEnvelope(body []byte) (kind runtime.TypeMeta, raw []byte, err error) {
	for data := body[len(magic):]; len(data) > 0; {
		var tag uint64
		var content []byte
		if tag, content, data = nextField(data); tag == 0 {
			return kind, nil, errInvalidProtobuf
		}
		switch tag >> 3 {
		case 1:
			err = kind.Unmarshal(content)
		case 2:
			raw = content
		case 3:
			if len(content) > 0 {
				err = fmt.Errorf("%w: content encoding %.20q", errInvalidProtobuf, content)
			}
		}
		if err != nil {
			return kind, nil, err
		}
	}
	return kind, raw, nil
}

// nextField returns the tag of the first field of a message, its content if it is length-delimited, and the fields after it. The tag
// of an invalid field is 0.
func nextField(data []byte) (tag uint64, content, rest []byte) {
	tag, n := binary.Uvarint(data)
	if n <= 0 {
		return 0, nil, nil
	}
	data = data[n:]
	var size uint64
	switch tag & 7 {
	case 0:
		if _, n = binary.Uvarint(data); n <= 0 {
			return 0, nil, nil
		}
		size = uint64(n)
	case 1:
		size = 8
	case 2:
		length, n := binary.Uvarint(data)
		if n <= 0 || length > uint64(len(data)-n) {
			return 0, nil, nil
		}
		return tag, data[n:][:length], data[n:][length:]
	case 5:
		size = 4
	default:
		return 0, nil, nil
	}
	if size > uint64(len(data)) {
		return 0, nil, nil
	}
	return tag, nil, data[size:]
}

// decodeMessage decodes an object or a list as protobuf into a zero value of a generated type. A Status in its place is returned as by
// statusError, and leaves into unchanged.
func decodeMessage(body []byte, into message, limits unstructured.Limits) (isStatus bool, err error) {
	kind, raw, err := splitEnvelope(body)
	if err != nil {
		return false, err
	}
	if kind.APIVersion == "v1" && kind.Kind == statusKind.Kind {
		if _, expected := into.(*metav1.Status); !expected {
			status := &metav1.Status{}
			if err := unmarshalMessage(raw, status, limits); err != nil {
				return true, err
			}
			return true, statusError(status)
		}
	}
	return false, unmarshalMessage(raw, into, limits)
}

// unmarshalMessage decodes a message within limits.
func unmarshalMessage(raw []byte, into message, limits unstructured.Limits) error {
	if most := memoryLimit(limits); int64(len(raw)) > most/maxGrowth && exceedsMemory(raw, reflect.TypeOf(into).Elem(), most) {
		return &unstructured.LimitError{Limit: most}
	}
	return into.Unmarshal(raw)
}

// memoryLimit returns the limit of an object in bytes.
func memoryLimit(limits unstructured.Limits) int64 {
	switch {
	case limits.Object < 0:
		return math.MaxInt64
	case limits.Object == 0:
		return defaultMemoryLimit
	default:
		return limits.Object
	}
}

// defaultMemoryLimit is the default of unstructured.Limits.Object.
const defaultMemoryLimit = 320 << 20

// readFrame reads a frame of a watch into buffer: four bytes with the length, and an event. It returns io.EOF at the end of the watch.
func readFrame(body io.Reader, buffer *bytes.Buffer, limits unstructured.Limits) ([]byte, error) {
	var header [4]byte
	if _, err := io.ReadFull(body, header[:]); err != nil {
		return nil, err
	}
	size := int64(binary.BigEndian.Uint32(header[:]))
	if most := memoryLimit(limits); size > most/8 {
		return nil, &unstructured.LimitError{Limit: most}
	}
	buffer.Reset() // It grows as input arrives: a length alone allocates nothing.
	if _, err := io.CopyN(buffer, body, size); err != nil {
		return nil, unexpectedEOF(err)
	}
	return buffer.Bytes(), nil
}

// splitEvent splits an event of a watch into its type and its object.
func splitEvent(frame []byte) (eventType watch.EventType, object []byte, err error) {
	for len(frame) > 0 {
		var tag uint64
		var content []byte
		if tag, content, frame = nextField(frame); tag == 0 {
			return "", nil, errInvalidProtobuf
		}
		switch tag >> 3 {
		case 1:
			eventType = watch.EventType(content)
		case 2: // a runtime.RawExtension
			if len(content) > 0 {
				if tag, object, _ = nextField(content); tag == 0 {
					return "", nil, errInvalidProtobuf
				}
			}
		}
	}
	return eventType, object, nil
}

// unexpectedEOF returns err, and io.ErrUnexpectedEOF for io.EOF.
func unexpectedEOF(err error) error {
	if err == io.EOF { //nolint:errorlint // itself
		return io.ErrUnexpectedEOF
	}
	return err
}
