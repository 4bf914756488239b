package unstructured

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Metadata returns an object of the given kind and apiVersion that has l's metadata and nothing else. It has memory of its
// own.
func (l *Lazy) Metadata(of metav1.TypeMeta) *Lazy {
	stream := encoding.BorrowStream(nil)
	defer encoding.ReturnStream(stream)
	var at places
	stream.WriteRaw(`{"kind":`)
	at[kindAt] = stream.Buffered()
	stream.WriteString(of.Kind)
	stream.WriteRaw(`,"apiVersion":`)
	at[apiVersionAt] = stream.Buffered()
	stream.WriteString(of.APIVersion)
	var metadata []byte
	if start := l.at[metadataAt]; start != 0 {
		metadata = l.data[start:valueEnd(l.data, start)]
		stream.WriteRaw(`,"metadata":`)
		for p, old := range l.at {
			if place(p) >= metadataAt && old != 0 {
				at[p] = stream.Buffered() + old - start
			}
		}
	}
	data := make([]byte, 0, stream.Buffered()+len(metadata)+1)
	data = append(append(data, stream.Buffer()...), metadata...)
	return &Lazy{data: append(data, '}'), at: at}
}
