package unstructured

import (
	"bytes"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Lazy is an object of any kind that has been checked but not decoded: it keeps its JSON, answers from that, and
// becomes a full [Object] on demand. It takes about the memory of its JSON, a fraction of an Object's, and making one
// a fraction of the time. [Get] reads any field of it; its methods are Object's and answer what Object's would.
//
// A Lazy never changes: share it between goroutines. It owns its memory, and what its methods return, but for JSON,
// does not keep it alive. Make one with [NewLazy], [ListDecoder.NextLazy] or [WatchDecoder.NextLazy].
type Lazy struct {
	data []byte
	at   places
}

// NewLazy reads one object, which must be all of data. It accepts and refuses what [Decode] does, with the same
// errors. It keeps a copy of data's object. Safe for concurrent use.
func NewLazy(data []byte) (*Lazy, error) {
	r := borrowReader(data)
	defer r.release()
	if err := r.findObject(); err != nil {
		return nil, err
	}
	l, err := r.lazy()
	if err != nil {
		return nil, err
	}
	if err := r.finish(); err != nil {
		return nil, err
	}
	if err := l.checkType(); err != nil {
		return nil, err
	}
	return l, nil
}

// lazyValue reads any value, an object as a *Lazy.
func (r *reader) lazyValue() (any, error) {
	c, err := r.next()
	if err != nil {
		return nil, err
	}
	if c != '{' {
		return r.value()
	}
	l, err := r.lazy()
	if err != nil {
		return nil, err
	}
	return l, nil
}

// lazy reads an object, whose opening brace is next.
func (r *reader) lazy() (*Lazy, error) {
	l, err := r.skipObject()
	if err != nil {
		return nil, err
	}
	return l.own(), nil
}

// own is l with memory of its own, and no more than it needs.
func (l Lazy) own() *Lazy {
	data := make([]byte, len(l.data)) // bytes.Clone may take more
	copy(data, l.data)
	return &Lazy{data: data, at: l.at}
}

// checkType refuses what checkType refuses of the whole object, with the same words.
func (l *Lazy) checkType() error {
	apiVersion := l.raw(apiVersionAt)
	if len(l.raw(kindAt)) > 0 && bytes.Count(apiVersion, []byte("/")) < 2 && bytes.IndexByte(apiVersion, '\\') < 0 {
		return nil
	}
	obj, err := l.Object()
	if err != nil {
		return err
	}
	return checkType(obj.Object)
}

// hasType tells whether it has a kind or an apiVersion.
func (l *Lazy) hasType() bool { return len(l.raw(kindAt)) > 0 || len(l.raw(apiVersionAt)) > 0 }

// Object decodes all of it, as [Decode] does. Each call makes an object of its own. The error is always nil unless l
// is the zero Lazy.
func (l *Lazy) Object() (*Object, error) {
	r := borrowReader(l.data)
	defer r.release()
	if err := r.findObject(); err != nil {
		return nil, err
	}
	m, err := r.object()
	if err != nil {
		return nil, err
	}
	return &Object{Object: m}, nil
}

// JSON is the object as the server sent it, with kind and apiVersion. It is shared: it must not be changed, and keeps
// the Lazy's memory alive.
func (l *Lazy) JSON() []byte { return l.data }

// MarshalJSON is JSON, for encoding/json.
func (l *Lazy) MarshalJSON() ([]byte, error) { return l.data, nil }

// String names the object: what it holds may be secret.
func (l *Lazy) String() string {
	name := l.GetName()
	if namespace := l.GetNamespace(); namespace != "" {
		name = namespace + "/" + name
	}
	return l.GetKind() + " " + name
}

// GetKind is as Object's.
func (l *Lazy) GetKind() string { return l.text(kindAt) }

// GetAPIVersion is as Object's.
func (l *Lazy) GetAPIVersion() string { return l.text(apiVersionAt) }

// GroupVersionKind is as Object's: empty if the apiVersion is malformed.
func (l *Lazy) GroupVersionKind() schema.GroupVersionKind {
	gv, err := schema.ParseGroupVersion(l.GetAPIVersion())
	if err != nil {
		return schema.GroupVersionKind{}
	}
	return gv.WithKind(l.GetKind())
}

// GetName is as Object's.
func (l *Lazy) GetName() string { return l.text(nameAt) }

// GetNamespace is as Object's.
func (l *Lazy) GetNamespace() string { return l.text(namespaceAt) }

// GetUID is as Object's.
func (l *Lazy) GetUID() types.UID { return types.UID(l.text(uidAt)) }

// GetResourceVersion is as Object's.
func (l *Lazy) GetResourceVersion() string { return l.text(resourceVersionAt) }

// GetLabels is as Object's.
func (l *Lazy) GetLabels() map[string]string { return l.withMetadata("labels").GetLabels() }

// GetAnnotations is as Object's.
func (l *Lazy) GetAnnotations() map[string]string {
	return l.withMetadata("annotations").GetAnnotations()
}

// GetOwnerReferences is as Object's.
func (l *Lazy) GetOwnerReferences() []metav1.OwnerReference {
	return l.withMetadata("ownerReferences").GetOwnerReferences()
}

// withMetadata is an object that has nothing but this field of metadata, for apimachinery to say what it makes of it.
func (l *Lazy) withMetadata(field string) *Object {
	v, _, _ := l.walk([]string{"metadata", field})
	return &Object{Object: map[string]any{"metadata": map[string]any{field: v}}}
}

// text is the string at a place, empty if something else is there.
func (l *Lazy) text(p place) string { return unquoted(l.raw(p)) }

// raw is what stands between the quotes of the string at a place.
func (l *Lazy) raw(p place) []byte {
	start := l.at[p]
	if start == 0 || l.data[start] != '"' {
		return nil
	}
	end, _ := textEnd(l.data, start+1)
	return l.data[start+1 : end-1]
}

// unquoted is what the text between quotes means, which has been checked.
func unquoted(raw []byte) string {
	if plainPrefix(raw) == len(raw) {
		return string(raw)
	}
	return string(unquote(nil, raw))
}
