package unstructured

import (
	"bytes"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// typeSuffix is how the JSON of an object ends that is given a kind and an apiVersion. Behind all other members they
// are the ones that count.
type typeSuffix struct {
	text                 []byte
	kindAt, apiVersionAt int // in text
}

func newTypeSuffix(t metav1.TypeMeta) *typeSuffix {
	stream := encoding.BorrowStream(nil)
	defer encoding.ReturnStream(stream)
	s := &typeSuffix{}
	stream.WriteRaw(`,"kind":`)
	s.kindAt = stream.Buffered()
	stream.WriteString(t.Kind)
	stream.WriteRaw(`,"apiVersion":`)
	s.apiVersionAt = stream.Buffered()
	stream.WriteString(t.APIVersion)
	stream.WriteRaw(`}`)
	s.text = bytes.Clone(stream.Buffer())
	return s
}

// typed is own with a kind and an apiVersion.
func (l Lazy) typed(suffix *typeSuffix) *Lazy {
	body := bytes.TrimRight(l.data[:len(l.data)-1], " \t\r\n")
	text, shift := suffix.text, len(body)
	if len(body) == 1 { // the brace alone
		text, shift = text[1:], 0
	}
	data := make([]byte, len(body)+len(text)) // append may take more
	copy(data[copy(data, body):], text)
	l.at[kindAt], l.at[apiVersionAt] = shift+suffix.kindAt, shift+suffix.apiVersionAt
	return &Lazy{data: data, at: l.at}
}
