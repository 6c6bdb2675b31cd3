# Makes every line of a text a C string literal that ends with a newline.
s/\\/\\\\/g
s/"/\\"/g
s/.*/"&\\n"/
