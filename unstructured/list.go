package unstructured

import (
	"fmt"
	"io"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ListDecoder reads the items of a list off its response's body, one by one, whatever order the list's fields come
// in. It holds one item at a time, but for one case: items without kind and apiVersion of their own wait for the
// list's if these come after them, which no Kubernetes server does. One goroutine at a time.
type ListDecoder struct {
	r        *reader
	head     map[string]any // the list's fields without its items
	state    listState
	sawItems bool
	count    int         // items read
	held     []*Lazy     // items that wait for the list's kind, and those behind them
	suffix   *typeSuffix // what items get that have neither kind nor apiVersion, once it is known
	err      error
}

type listState int

const (
	beforeList listState = iota
	betweenMembers
	beforeItem // the next token begins an item
	behindItem
	afterList
)

const listChunk = 32 << 10

// NewListDecoder reads a list from r, which stays the caller's to close. It reads r to its end.
func NewListDecoder(r io.Reader) *ListDecoder {
	return &ListDecoder{r: newReader(r, listChunk), head: map[string]any{}}
}

// NotListError says that the input is an object, but no list: a Status, perhaps, or a single object where a list
// was asked for.
type NotListError struct {
	// Object is what the input holds.
	Object *Object
}

func (e *NotListError) Error() string {
	return fmt.Sprintf("%s %s is not a list: it has no items", e.Object.GetAPIVersion(), e.Object.GetKind())
}

// Next reads the next item, decoded as [Decode] does, though an item may lack a kind. An item with neither kind nor
// apiVersion gets the list's, without the suffix List. After the last item Next fails with io.EOF itself.
//
// A list is an object with items, which may be null, or of a kind that ends in List. Anything else with a kind is a
// *NotListError (errors.As), where apimachinery makes an empty list. Input that ends early is io.ErrUnexpectedEOF and
// a failing reader its own error (errors.Is); a list without a kind is refused as Decode refuses it, and so is, unlike
// in apimachinery, one that gives its kind, apiVersion or items twice. Errors may follow good items; a list is whole
// only if Next came to io.EOF. After an error it gives the same error for ever.
func (d *ListDecoder) Next() (*Object, error) {
	return first(d, d.next)
}

// NextLazy is Next without decoding the item. It fails where Next does, with the same errors. Calls of Next and
// NextLazy may alternate.
func (d *ListDecoder) NextLazy() (*Lazy, error) {
	return first(d, d.nextLazy)
}

// first is next up to the first error, which stays.
func first[T any](d *ListDecoder, next func() (*T, error)) (*T, error) {
	if d.err != nil {
		return nil, d.err
	}
	item, err := next()
	if err != nil {
		d.err, d.held = err, nil
		return nil, err
	}
	return item, nil
}

// Meta is the list's metadata as far as it has been read, without the deprecated selfLink. It is final once Next has
// failed with io.EOF: for custom resources it comes behind the items. Fields of a wrong type are left out.
func (d *ListDecoder) Meta() metav1.ListMeta {
	var meta metav1.ListMeta
	fields, _ := d.head["metadata"].(map[string]any)
	meta.ResourceVersion, _ = fields["resourceVersion"].(string)
	meta.Continue, _ = fields["continue"].(string)
	if count, ok := fields["remainingItemCount"].(int64); ok {
		meta.RemainingItemCount = &count
	}
	if shard, ok := fields["shardInfo"].(map[string]any); ok {
		selector, _ := shard["selector"].(string)
		meta.ShardInfo = &metav1.ShardInfo{Selector: selector}
	}
	return meta
}

// next decodes items as they come, but for those that may have to wait for the list's kind.
func (d *ListDecoder) next() (*Object, error) {
	if err := d.advance(); err != nil {
		return nil, err
	}
	if d.state == beforeItem && d.suffix != nil && len(d.held) == 0 {
		return d.readItem()
	}
	item, err := d.nextLazy()
	if err != nil {
		return nil, err
	}
	return item.Object()
}

func (d *ListDecoder) nextLazy() (*Lazy, error) {
	for {
		if err := d.advance(); err != nil {
			return nil, err
		}
		if d.state == afterList {
			return d.release()
		}
		item, err := d.readLazy()
		if err != nil {
			return nil, err
		}
		if len(d.held) == 0 && (d.suffix != nil || item.hasType()) {
			return item, nil
		}
		d.held = append(d.held, item)
	}
}

// advance reads on to the next item, or to the end.
func (d *ListDecoder) advance() error {
	for d.state != beforeItem && d.state != afterList {
		var err error
		if d.state == behindItem {
			err = d.readComma()
		} else {
			err = d.readMember()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (d *ListDecoder) readComma() error {
	more, err := d.r.nextElement()
	if err != nil {
		return err
	}
	d.enterItems(more)
	return nil
}

// release is the first item that waited, at the end of the list.
func (d *ListDecoder) release() (*Lazy, error) {
	if len(d.held) == 0 {
		return nil, io.EOF
	}
	item := d.held[0]
	d.held[0], d.held = nil, d.held[1:]
	if !item.hasType() {
		item = item.typed(d.suffix)
	}
	return item, nil
}

// readMember reads one member of the list, of items only the opening bracket.
func (d *ListDecoder) readMember() error {
	name, more, err := d.openMember()
	if err != nil {
		return err
	}
	if !more {
		return d.finish()
	}
	if name == "items" {
		return d.openItems()
	}
	v, err := d.r.value()
	if err != nil {
		return err
	}
	if _, again := d.head[name]; again && (name == "kind" || name == "apiVersion") {
		return &repeatedError{name}
	}
	d.head[name] = v
	if list := d.typeMeta(); list.Kind != "" && list.APIVersion != "" && d.suffix == nil {
		d.setSuffix()
	}
	return nil
}

// setSuffix settles what items get that lack a kind.
func (d *ListDecoder) setSuffix() {
	list := d.typeMeta()
	d.suffix = newTypeSuffix(metav1.TypeMeta{Kind: strings.TrimSuffix(list.Kind, "List"), APIVersion: list.APIVersion})
}

func (d *ListDecoder) openMember() (name string, more bool, err error) {
	if d.state == betweenMembers {
		return d.r.nextMember()
	}
	c, err := d.r.next()
	if err != nil {
		return "", false, err
	}
	if c != '{' {
		return "", false, d.r.syntax(c, "where a list should begin")
	}
	d.state = betweenMembers
	return d.r.openObject()
}

func (d *ListDecoder) openItems() error {
	if d.sawItems {
		return &repeatedError{"items"}
	}
	d.sawItems = true
	c, err := d.r.next()
	if err != nil {
		return err
	}
	switch c {
	case '[':
		more, err := d.r.openArray()
		if err != nil {
			return err
		}
		d.enterItems(more)
		return nil
	case 'n':
		return d.r.literal("null")
	default:
		return d.r.syntax(c, "where a list's items should begin")
	}
}

func (d *ListDecoder) enterItems(more bool) {
	d.state = betweenMembers
	if more {
		d.state = beforeItem
	}
}

func (d *ListDecoder) readItem() (*Object, error) {
	d.r.shrink(listChunk)
	v, err := d.r.value()
	if err != nil {
		return nil, err
	}
	// null is an object without fields, as for apimachinery.
	m, isObject := v.(map[string]any)
	if !isObject && v != nil {
		return nil, d.notObject(v)
	}
	d.count++
	d.state = behindItem
	obj := &Object{Object: m}
	if list := d.typeMeta(); obj.GetKind() == "" && obj.GetAPIVersion() == "" {
		obj.SetKind(strings.TrimSuffix(list.Kind, "List"))
		obj.SetAPIVersion(list.APIVersion)
	}
	return obj, nil
}

// readLazy reads an item as readItem does. It gives it the list's kind if that is known.
func (d *ListDecoder) readLazy() (*Lazy, error) {
	d.r.shrink(listChunk)
	c, err := d.r.next()
	if err != nil {
		return nil, err
	}
	item := Lazy{data: []byte("{}")} // null: see readItem
	if c == '{' {
		item, err = d.r.skipObject()
	} else {
		err = d.readNull()
	}
	if err != nil {
		return nil, err
	}
	d.count++
	d.state = behindItem
	if d.suffix != nil && !item.hasType() {
		return item.typed(d.suffix), nil
	}
	return item.own(), nil
}

// readNull reads an item that is no object.
func (d *ListDecoder) readNull() error {
	v, err := d.r.value()
	if err == nil && v != nil {
		err = d.notObject(v)
	}
	return err
}

func (d *ListDecoder) notObject(item any) error {
	return fmt.Errorf("the list's items[%d] is %s, not an object", d.count, typeName(item))
}

// typeMeta is the list's kind and apiVersion, as far as they have been read.
func (d *ListDecoder) typeMeta() metav1.TypeMeta {
	kind, _ := d.head["kind"].(string)
	apiVersion, _ := d.head["apiVersion"].(string)
	return metav1.TypeMeta{Kind: kind, APIVersion: apiVersion}
}

// finish reads what is behind the list and checks the whole.
func (d *ListDecoder) finish() error {
	if err := d.r.finish(); err != nil {
		return err
	}
	if err := checkType(d.head); err != nil {
		return err
	}
	if !d.sawItems && !strings.HasSuffix(d.typeMeta().Kind, "List") {
		return &NotListError{Object: &Object{Object: d.head}}
	}
	d.state = afterList
	if d.suffix == nil {
		d.setSuffix()
	}
	return nil
}

// repeatedError refuses what apimachinery lets pass: items may be out already, and cannot be taken back.
type repeatedError struct{ name string }

func (e *repeatedError) Error() string {
	return fmt.Sprintf("the list has two fields named %q", e.name)
}
