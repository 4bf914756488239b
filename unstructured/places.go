package unstructured

import "bytes"

// A place is one of the fields whose values are found in a Lazy without reading what stands before them.
type place int

const (
	nowhere place = iota
	kindAt
	apiVersionAt
	specAt
	statusAt
	metadataAt
	nameAt // from here on within metadata
	namespaceAt
	uidAt
	resourceVersionAt
	placeCount
)

// places are the indexes at which the fields' values begin, of fields with one name the last; 0 if there is none.
type places [placeCount]int

func placeInObject(name string) place {
	switch name {
	case "kind":
		return kindAt
	case "apiVersion":
		return apiVersionAt
	case "spec":
		return specAt
	case "status":
		return statusAt
	case "metadata":
		return metadataAt
	default:
		return nowhere
	}
}

func placeInMetadata(name string) place {
	switch name {
	case "name":
		return nameAt
	case "namespace":
		return namespaceAt
	case "uid":
		return uidAt
	case "resourceVersion":
		return resourceVersionAt
	default:
		return nowhere
	}
}

// note remembers which place the value behind a name is. A second metadata replaces the first and all that is in it.
func (s *skipper) note(name []byte) {
	if bytes.IndexByte(name, '\\') >= 0 {
		name = unquote(nil, name)
	}
	if s.depth == 2 {
		s.next = placeInMetadata(string(name))
		return
	}
	s.next = placeInObject(string(name))
	if s.next == metadataAt {
		clear(s.at[metadataAt:])
	}
}
