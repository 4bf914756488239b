// Package restmapper resolves the names of resources that users type: a plural, a singular, a kind or a short name, alone or
// with its group and version, as kubectl accepts them.
//
//	mapper := restmapper.New(discovery.New(conn, nil))
//	resource, err := mapper.Resource(ctx, "deploy")
//	if err != nil {
//		return err
//	}
//	fmt.Println(resource.GVR, resource.GVK, resource.Namespaced)
//
// The result is the [discovery.Resource] that a request needs: path, scope, verbs and subresources. A name that is unknown or
// removed is a [NoMatchError] with suggestions, one of several resources an [AmbiguousError], and one that cannot be resolved
// now an [UnavailableError]. [Mapper.WaitForResources] waits for names that are not served yet. [Mapper.RESTMapper] adapts a mapper to apimachinery's meta.RESTMapper.
package restmapper
