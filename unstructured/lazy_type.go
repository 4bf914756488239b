package unstructured

import (
	"bytes"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// itemType is the kind and apiVersion that a list's items get that have neither, and how their JSON ends then: behind
// all other members these are the ones that count.
type itemType struct {
	metav1.TypeMeta
	suffix               []byte
	kindAt, apiVersionAt int // in suffix
}

func newItemType(list metav1.TypeMeta) *itemType {
	stream := encoding.BorrowStream(nil)
	defer encoding.ReturnStream(stream)
	t := &itemType{TypeMeta: metav1.TypeMeta{Kind: strings.TrimSuffix(list.Kind, "List"), APIVersion: list.APIVersion}}
	stream.WriteRaw(`,"kind":`)
	t.kindAt = stream.Buffered()
	stream.WriteString(t.Kind)
	stream.WriteRaw(`,"apiVersion":`)
	t.apiVersionAt = stream.Buffered()
	stream.WriteString(t.APIVersion)
	stream.WriteRaw(`}`)
	t.suffix = bytes.Clone(stream.Buffer())
	return t
}

// typed is own with a kind and an apiVersion.
func (l Lazy) typed(t *itemType) *Lazy {
	body := bytes.TrimRight(l.data[:len(l.data)-1], " \t\r\n")
	suffix, shift := t.suffix, len(body)
	if len(body) == 1 { // the brace alone
		suffix, shift = suffix[1:], 0
	}
	data := make([]byte, len(body)+len(suffix)) // append may take more
	copy(data[copy(data, body):], suffix)
	l.at[kindAt], l.at[apiVersionAt] = shift+t.kindAt, shift+t.apiVersionAt
	return &Lazy{data: data, at: l.at}
}
