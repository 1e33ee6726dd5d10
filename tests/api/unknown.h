/* unknown.h - functions that generate.py must refuse. */
WEFT_API int32_t weft_unknown(const weft_context *context, struct weft_unknown_thing *thing);
