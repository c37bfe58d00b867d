//! How many images a conversation may hold: what an API would refuse is refused here, in words for the model,
//! because a refusal there costs the run all its images.
//!
//! Pure. What a single image may be is decided where it is read, in `tools`.

use crate::conversation::Image;
use crate::tools::image::longest_side;

/// The most images of a conversation, and their characters of base64 together: Anthropic takes 100 images and
/// requests of 32 MB, which have to hold the texts too.
const MOST_IMAGES: usize = 100;
const MOST_CHARACTERS: usize = 24 << 20;
/// In a request of more images than this, Anthropic takes none with a longer side than that.
const MANY: usize = 20;
const MOST_PIXELS_AMONG_MANY: u32 = 2000;

const TOO_MANY: &str = "not shown: a conversation holds at most 100 images and 24 MiB of them in base64; \
    go by those shown before, or make smaller copies to look at";
const TOO_LARGE_AMONG_MANY: &str = "not shown: in a conversation of more than 20 images none may have a side of \
    more than 2000 pixels; make a smaller copy to look at";
const TOO_MANY_BESIDE_LARGE: &str = "not shown: a conversation that holds an image with a side of more than 2000 \
    pixels takes at most 20 images; go by those shown before";

/// The images of a conversation, as far as limits go.
#[derive(Debug, Default)]
pub struct Held {
    count: usize,
    characters: usize,
    /// Whether one of them is refused among many.
    has_large: bool,
}

impl Held {
    /// How many characters of base64 they have together.
    pub fn characters(&self) -> usize {
        self.characters
    }

    /// Takes these images in, all or none.
    ///
    /// Errors: why they cannot be shown.
    pub fn add(&mut self, images: &[Image]) -> Result<(), &'static str> {
        let count = self.count + images.len();
        let characters = self.characters + images.iter().map(|image| image.data.len()).sum::<usize>();
        if count > MOST_IMAGES || characters > MOST_CHARACTERS {
            return Err(TOO_MANY);
        }
        let is_large = |image| longest_side(image).is_some_and(|pixels| pixels > MOST_PIXELS_AMONG_MANY);
        let are_large = images.iter().any(is_large);
        match count > MANY && !images.is_empty() {
            true if are_large => return Err(TOO_LARGE_AMONG_MANY),
            true if self.has_large => return Err(TOO_MANY_BESIDE_LARGE),
            _ => {}
        }
        *self = Held { count, characters, has_large: self.has_large || are_large };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::image::tests::png_of;

    fn images(count: usize, side: u32) -> Vec<Image> {
        vec![Image::new("image/png", &png_of(1, side, 5)); count]
    }

    #[test]
    fn a_large_image_is_taken_among_few_and_no_other_beyond_twenty() {
        let mut held = Held::default();
        assert_eq!(held.add(&images(1, 2001)), Ok(()));
        assert_eq!(held.add(&images(20, 2)), Err(TOO_MANY_BESIDE_LARGE));
        assert_eq!(held.add(&images(19, 2)), Ok(()));
        assert_eq!(held.add(&images(1, 2)), Err(TOO_MANY_BESIDE_LARGE));
        assert_eq!(held.add(&images(1, 2001)), Err(TOO_LARGE_AMONG_MANY));
        assert_eq!(held.add(&[]), Ok(()));
    }

    #[test]
    fn none_beyond_twenty_may_be_large() {
        let mut held = Held::default();
        assert_eq!(held.add(&images(20, 2000)), Ok(()));
        assert_eq!(held.add(&images(1, 2001)), Err(TOO_LARGE_AMONG_MANY));
        assert_eq!(held.add(&images(80, 2000)), Ok(()));
        assert_eq!(held.add(&images(1, 2)), Err(TOO_MANY));
    }

    #[test]
    fn images_that_are_refused_take_no_room() {
        let mut held = Held::default();
        let large = vec![Image { media_type: "image/png".to_owned(), data: "A".repeat(5 << 20) }; 5];
        assert_eq!(held.add(&large), Err(TOO_MANY));
        assert_eq!((held.add(&large[..4]), held.characters()), (Ok(()), 20 << 20));
    }
}
