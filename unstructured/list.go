package unstructured

import (
	"errors"
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
	count    int        // items read
	itemType *itemType  // what items get that have neither kind nor apiVersion, once it is known
	held     []heldItem // items that wait for that, and those behind them
	err      error
}

type heldItem struct {
	item  any // an *Object or a *Lazy
	typed bool
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
	return fmt.Sprintf("%s %s is not a list: it has no items", printable(e.Object.GetAPIVersion()), printable(e.Object.GetKind()))
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
	return nextItem(d, d.readItem, func(obj *Object) *Object {
		obj.SetKind(d.itemType.Kind)
		obj.SetAPIVersion(d.itemType.APIVersion)
		return obj
	})
}

// NextLazy is Next without decoding the item. It fails where Next does, with the same errors. One list is read by one
// of the two.
func (d *ListDecoder) NextLazy() (*Lazy, error) {
	return nextItem(d, d.readLazy, func(l *Lazy) *Lazy { return l.typed(d.itemType) })
}

// Share has the items that Next reads share equal parts, with each other and with what else is read with the same
// parts; nil for no more.
func (d *ListDecoder) Share(parts *Parts) { d.r.parts = parts }

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

// TypeMeta returns the list's own kind and apiVersion as far as they have been read. It is final once Next has failed with
// io.EOF.
func (d *ListDecoder) TypeMeta() metav1.TypeMeta {
	kind, _ := d.head["kind"].(string)
	apiVersion, _ := d.head["apiVersion"].(string)
	return metav1.TypeMeta{Kind: kind, APIVersion: apiVersion}
}

// nextItem is the next item; read reads it and tells whether it has a type, setType gives it the list's.
func nextItem[T any](d *ListDecoder, read func() (*T, bool, error), setType func(*T) *T) (*T, error) {
	for d.err == nil {
		if d.err = d.advance(); d.err != nil {
			break
		}
		if d.state == afterList {
			return releaseHeld(d, setType)
		}
		item, typed, err := read()
		switch {
		case err != nil:
			d.err = err
		case len(d.held) > 0 || !typed && d.itemType == nil:
			d.held = append(d.held, heldItem{item, typed})
		case !typed:
			return setType(item), nil
		default:
			return item, nil
		}
	}
	d.held = nil
	return nil, d.err
}

// releaseHeld is the first item that waited, at the end of the list.
func releaseHeld[T any](d *ListDecoder, setType func(*T) *T) (*T, error) {
	if len(d.held) == 0 {
		d.err = io.EOF
		return nil, d.err
	}
	first := d.held[0]
	d.held[0], d.held = heldItem{}, d.held[1:]
	item, isIt := first.item.(*T)
	if !isIt {
		d.err = errors.New("a list must be read by Next alone or by NextLazy alone")
		return nil, d.err
	}
	if !first.typed {
		item = setType(item)
	}
	return item, nil
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
	if list := d.TypeMeta(); list.Kind != "" && list.APIVersion != "" && d.itemType == nil {
		d.itemType = newItemType(list)
	}
	return nil
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

func (d *ListDecoder) readItem() (obj *Object, typed bool, err error) {
	d.r.shrink(listChunk)
	v, err := d.r.whole()
	if err != nil {
		return nil, false, err
	}
	// null is an object without fields, as for apimachinery.
	m, isObject := v.(map[string]any)
	if !isObject && v != nil {
		return nil, false, d.notObject(v)
	}
	d.count++
	d.state = behindItem
	obj = d.r.parts.object(m, false)
	return obj, obj.GetKind() != "" || obj.GetAPIVersion() != "", nil
}

// readLazy is readItem without decoding the item.
func (d *ListDecoder) readLazy() (l *Lazy, typed bool, err error) {
	d.r.shrink(listChunk)
	c, err := d.r.next()
	if err != nil {
		return nil, false, err
	}
	item := Lazy{data: []byte("{}")} // null: see readItem
	if c == '{' {
		item, err = d.r.skipObject()
	} else {
		err = d.readNull()
	}
	if err != nil {
		return nil, false, err
	}
	d.count++
	d.state = behindItem
	if d.itemType != nil && !item.hasType() {
		return item.typed(d.itemType), true, nil // one copy, not two
	}
	return item.own(), item.hasType(), nil
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

// finish reads what is behind the list and checks the whole.
func (d *ListDecoder) finish() error {
	if err := d.r.finish(); err != nil {
		return err
	}
	if err := checkType(d.head); err != nil {
		return err
	}
	if !d.sawItems && !strings.HasSuffix(d.TypeMeta().Kind, "List") {
		return &NotListError{Object: &Object{Object: d.head}}
	}
	d.state = afterList
	if d.itemType == nil {
		d.itemType = newItemType(d.TypeMeta())
	}
	return nil
}

// repeatedError refuses what apimachinery lets pass: items may be out already, and cannot be taken back.
type repeatedError struct{ name string }

func (e *repeatedError) Error() string {
	return fmt.Sprintf("the list has two fields named %q", e.name)
}
