def shown_images():
    """Makes images results when they are shown or saved."""
    import io
    import os
    from PIL.Image import Image

    if getattr(Image, "_shows", False):
        return
    save = Image.save

    def png(self):
        out = io.BytesIO()
        save(self, out, "PNG")
        return out.getvalue()

    def show(self, *args, **named):
        display(self)

    def save_and_show(self, fp, *args, **named):
        save(self, fp, *args, **named)
        if isinstance(fp, (str, os.PathLike)):
            display(self)

    Image._shows, Image._repr_png_, Image.show, Image.save = True, png, show, save_and_show


shown_images()
del shown_images
